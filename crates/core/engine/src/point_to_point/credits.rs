//! Credits of flow control for messages that a task sends to itself: events, and the output of tasks that it has started.
//!
//! The launcher sends output only as fast as the task receives it. So each message has a [`ReceiptCredit`], which is given back when a
//! receive takes the message.

/// A credit of flow control, given back when a message is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiptCredit {
    /// The task whose output the message is.
    pub of: u32,
    /// In bytes.
    pub amount: u32,
}

impl ReceiptCredit {
    /// Nothing is given back.
    pub const FREE: ReceiptCredit = ReceiptCredit { of: 0, amount: 0 };
}

/// Credits that have been given back, and that nobody has taken.
#[derive(Debug, Default)]
pub struct ReceiptCredits {
    paid: Vec<ReceiptCredit>,
    sum: u32,
}

impl ReceiptCredits {
    /// Gives one back.
    pub fn pay(&mut self, credit: ReceiptCredit) {
        if credit.amount == 0 {
            return;
        }
        self.sum = self.sum.saturating_add(credit.amount);
        match self.paid.last_mut() {
            Some(last) if last.of == credit.of => {
                last.amount = last.amount.saturating_add(credit.amount);
            }
            _ => self.paid.push(credit),
        }
    }

    /// Returns how many bytes have been given back and not been taken.
    #[inline(always)]
    pub fn sum(&self) -> u32 {
        self.sum
    }

    /// Takes all that have been given back.
    pub fn take(&mut self) -> Vec<ReceiptCredit> {
        self.sum = 0;
        std::mem::take(&mut self.paid)
    }
}
