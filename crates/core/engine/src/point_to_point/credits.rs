//! Flow control credits for messages that a task sends to itself: events, and the output of tasks that it has started.
//!
//! The launcher sends output only as fast as the task receives it. So each message has a [`ReceiptCredit`], which is returned when a receive takes
//! the message.

/// A flow control credit, returned when a message is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiptCredit {
    /// The task whose output the message contains.
    pub of: u32,
    /// The amount, in bytes.
    pub amount: u32,
}

impl ReceiptCredit {
    /// A credit of 0 bytes, for messages without flow control.
    pub const FREE: ReceiptCredit = ReceiptCredit { of: 0, amount: 0 };
}

/// Credits that were returned here and not taken yet.
#[derive(Debug, Default)]
pub struct ReceiptCredits {
    paid: Vec<ReceiptCredit>,
    sum: u32,
}

impl ReceiptCredits {
    /// Returns a credit.
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

    /// Returns the number of bytes that were returned and not taken yet.
    #[inline(always)]
    pub fn sum(&self) -> u32 {
        self.sum
    }

    /// Removes and returns all credits that were returned here.
    pub fn take(&mut self) -> Vec<ReceiptCredit> {
        self.sum = 0;
        std::mem::take(&mut self.paid)
    }
}
