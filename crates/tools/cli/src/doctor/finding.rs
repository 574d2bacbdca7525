//! A finding of the doctor: one line of the report.

use serde_json::{Value, json};

/// How good a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// As it should be.
    Ok,
    /// A fact that is neither good nor bad.
    Info,
    /// It works, but costs speed.
    Slow,
    /// Something that is needed for what `value` says is not here.
    Missing,
}

impl State {
    pub fn word(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Info => "-",
            State::Slow => "slow",
            State::Missing => "missing",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone)]
pub struct Finding {
    pub area: &'static str,
    pub name: String,
    pub state: State,
    /// The finding, and its meaning.
    pub value: String,
    /// The remedy.
    pub next: Option<String>,
    /// Whether Regatta cannot work without it.
    pub essential: bool,
}

impl Finding {
    pub fn new(
        area: &'static str,
        name: impl Into<String>,
        state: State,
        value: impl Into<String>,
    ) -> Self {
        let (name, value) = (name.into(), value.into());
        Self {
            area,
            name,
            state,
            value,
            next: None,
            essential: false,
        }
    }

    pub fn ok(area: &'static str, name: impl Into<String>, value: impl Into<String>) -> Self {
        Self::new(area, name, State::Ok, value)
    }

    pub fn info(area: &'static str, name: impl Into<String>, value: impl Into<String>) -> Self {
        Self::new(area, name, State::Info, value)
    }

    pub fn slow(area: &'static str, name: impl Into<String>, value: impl Into<String>) -> Self {
        Self::new(area, name, State::Slow, value)
    }

    pub fn missing(area: &'static str, name: impl Into<String>, value: impl Into<String>) -> Self {
        Self::new(area, name, State::Missing, value)
    }

    pub fn next(mut self, step: impl Into<String>) -> Self {
        self.next = Some(step.into());
        self
    }

    pub fn essential(mut self) -> Self {
        self.essential = true;
        self
    }

    /// Whether Regatta cannot work on this host because of this.
    pub fn stops_us(&self) -> bool {
        self.essential && self.state == State::Missing
    }

    pub fn to_json(&self) -> Value {
        json!({
            "area": self.area,
            "name": self.name,
            "state": if self.state == State::Info { "info" } else { self.state.word() },
            "value": self.value,
            "next": self.next,
            "essential": self.essential,
        })
    }
}
