//! Size, bounds and alignment of a datatype.

/// Size, bounds and alignment of a type map, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Size of the data.
    pub size: i64,
    /// The lower bound.
    pub lb: i64,
    /// The upper bound.
    pub ub: i64,
    /// Lower bound of the data.
    pub true_lb: i64,
    /// Upper bound of the data.
    pub true_ub: i64,
    /// Whether the type map has a marker for the lower bound, which then determines it.
    pub fixed_lb: bool,
    /// Whether it has a marker for the upper bound.
    pub fixed_ub: bool,
    /// Whether the type map has neither data nor a marker.
    pub empty: bool,
    /// Alignment of the element with the strictest one.
    pub alignment: i64,
}

impl Bounds {
    /// The bounds of an empty type map.
    pub const EMPTY: Bounds = Bounds {
        size: 0,
        lb: 0,
        ub: 0,
        true_lb: 0,
        true_ub: 0,
        fixed_lb: false,
        fixed_ub: false,
        empty: true,
        alignment: 1,
    };

    /// Returns the bounds of a basic element.
    pub fn element(size: i64, alignment: i64) -> Bounds {
        Bounds {
            size,
            ub: size,
            true_ub: size,
            empty: false,
            alignment,
            ..Bounds::EMPTY
        }
    }

    /// Returns the extent, from the lower to the upper bound.
    pub fn extent(&self) -> i64 {
        self.ub.wrapping_sub(self.lb)
    }

    /// Returns the true extent, from the beginning of the data to its end.
    pub fn true_extent(&self) -> i64 {
        self.true_ub.wrapping_sub(self.true_lb)
    }

    /// Returns the bounds of `count` copies of the type map, `stride` bytes apart. Returns `None` on overflow.
    pub fn repeated(mut self, count: i64, stride: i64) -> Option<Bounds> {
        if count == 0 || self.empty {
            return Some(Bounds::EMPTY);
        }
        let last = stride.checked_mul(count - 1)?;
        let (low, high) = (last.min(0), last.max(0));
        self.size = self.size.checked_mul(count)?;
        self.lb = self.lb.checked_add(low)?;
        self.ub = self.ub.checked_add(high)?;
        if self.size != 0 {
            self.true_lb = self.true_lb.checked_add(low)?;
            self.true_ub = self.true_ub.checked_add(high)?;
        }
        self.checked()
    }

    /// Returns the bounds of the type map displaced by `by` bytes. Returns `None` on overflow.
    pub fn shifted(mut self, by: i64) -> Option<Bounds> {
        if self.empty {
            return Some(self);
        }
        self.lb = self.lb.checked_add(by)?;
        self.ub = self.ub.checked_add(by)?;
        if self.size != 0 {
            self.true_lb = self.true_lb.checked_add(by)?;
            self.true_ub = self.true_ub.checked_add(by)?;
        }
        self.checked()
    }

    /// Returns the bounds of both type maps together. Returns `None` on overflow.
    pub fn joined(self, other: Bounds) -> Option<Bounds> {
        if self.empty || other.empty {
            return Some(if self.empty { other } else { self });
        }
        let lb = match (self.fixed_lb, other.fixed_lb) {
            (true, false) => self.lb,
            (false, true) => other.lb,
            _ => self.lb.min(other.lb),
        };
        let ub = match (self.fixed_ub, other.fixed_ub) {
            (true, false) => self.ub,
            (false, true) => other.ub,
            _ => self.ub.max(other.ub),
        };
        let (true_lb, true_ub) = match (self.size, other.size) {
            (_, 0) => (self.true_lb, self.true_ub),
            (0, _) => (other.true_lb, other.true_ub),
            _ => (
                self.true_lb.min(other.true_lb),
                self.true_ub.max(other.true_ub),
            ),
        };
        let joined = Bounds {
            size: self.size.checked_add(other.size)?,
            lb,
            ub,
            true_lb,
            true_ub,
            fixed_lb: self.fixed_lb || other.fixed_lb,
            fixed_ub: self.fixed_ub || other.fixed_ub,
            empty: false,
            alignment: self.alignment.max(other.alignment),
        };
        joined.checked()
    }

    /// Returns the bounds with padding at the end, as a C compiler pads a structure so that its elements are aligned in
    /// an array. Returns `None` on overflow.
    pub fn padded(mut self) -> Option<Bounds> {
        let over = self.extent().rem_euclid(self.alignment);
        if !self.fixed_ub && over != 0 {
            self.ub = self.ub.checked_add(self.alignment - over)?;
        }
        self.checked()
    }

    /// Returns the bounds with markers for this lower bound and extent. Returns `None` on overflow.
    pub fn resized(mut self, lb: i64, extent: i64) -> Option<Bounds> {
        self.lb = lb;
        self.ub = lb.checked_add(extent)?;
        (self.fixed_lb, self.fixed_ub, self.empty) = (true, true, false);
        self.checked()
    }

    fn checked(self) -> Option<Bounds> {
        self.ub.checked_sub(self.lb)?;
        self.true_ub.checked_sub(self.true_lb)?;
        Some(self)
    }
}
