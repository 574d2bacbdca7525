//! A finding of the doctor: one line of the report.

use serde_json::{Value, json};

/// How good a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingState {
    /// As it should be.
    Ok,
    /// A fact that is neither good nor bad.
    Info,
    /// Something works, but costs speed.
    Slow,
    /// What `value` says is missing, and needed.
    Missing,
}

impl FindingState {
    pub fn word(self) -> &'static str {
        match self {
            FindingState::Ok => "ok",
            FindingState::Info => "-",
            FindingState::Slow => "slow",
            FindingState::Missing => "missing",
        }
    }
}

/// The result of one check.
#[derive(Debug, Clone)]
pub struct Finding {
    pub area: &'static str,
    pub name: String,
    pub state: FindingState,
    /// What was found, and what it means.
    pub value: String,
    /// What the user can do about it.
    pub next: Option<String>,
    /// Whether Regatta cannot work without it.
    pub essential: bool,
}

impl Finding {
    pub fn new(
        area: &'static str,
        name: impl Into<String>,
        state: FindingState,
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
        Self::new(area, name, FindingState::Ok, value)
    }

    pub fn info(area: &'static str, name: impl Into<String>, value: impl Into<String>) -> Self {
        Self::new(area, name, FindingState::Info, value)
    }

    pub fn slow(area: &'static str, name: impl Into<String>, value: impl Into<String>) -> Self {
        Self::new(area, name, FindingState::Slow, value)
    }

    pub fn missing(area: &'static str, name: impl Into<String>, value: impl Into<String>) -> Self {
        Self::new(area, name, FindingState::Missing, value)
    }

    pub fn next(mut self, step: impl Into<String>) -> Self {
        self.next = Some(step.into());
        self
    }

    pub fn essential(mut self) -> Self {
        self.essential = true;
        self
    }

    /// Returns whether Regatta cannot work on this host because of this finding.
    pub fn stops_us(&self) -> bool {
        self.essential && self.state == FindingState::Missing
    }

    pub fn to_json(&self) -> Value {
        json!({
            "area": self.area,
            "name": self.name,
            "state": if self.state == FindingState::Info { "info" } else { self.state.word() },
            "value": self.value,
            "next": self.next,
            "essential": self.essential,
        })
    }
}
