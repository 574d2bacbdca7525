//! Groups: ordered sets of tasks, each with separate messages.

use std::marker::PhantomData;

use regatta_process::{self as process, GroupId};

use crate::error::{Result, ours};
use crate::select::rank_number;
use crate::{Error, Task, raw};

/// An ordered set of tasks, of which this task is one. Messages are sent and collectives are called in a group. A message
/// sent in one group is never received in another.
///
/// The methods that make a group are collective: every task that the method names calls it, and it blocks until all of them
/// have. Dropping a group frees it in this task alone; messages of this group that have not been received yet are lost.
///
/// Any thread may use a group. If several threads call collectives of one group, the program must ensure that all members
/// call them in the same order.
#[derive(Debug)]
pub struct Group<'t> {
    id: GroupId,
    rank: usize,
    size: usize,
    pub(crate) task: PhantomData<&'t Task>,
}

impl<'t> Group<'t> {
    pub(crate) fn world(_task: &'t Task) -> Group<'t> {
        // This fails only inside an operator: while the task is joined, its rank and the size are known.
        Group::of(GroupId::WORLD).unwrap_or(Group {
            id: GroupId::WORLD,
            rank: 0,
            size: 0,
            task: PhantomData,
        })
    }

    pub(crate) fn channel(_task: &'t Task, id: GroupId) -> Group<'t> {
        Group::of(id).unwrap_or(Group {
            id,
            rank: 0,
            size: 0,
            task: PhantomData,
        })
    }

    fn of(id: GroupId) -> Result<Group<'t>> {
        raw::outside()?;
        Ok(Group {
            id,
            rank: ours(process::rank(id))? as usize,
            size: ours(process::size(id))? as usize,
            task: PhantomData,
        })
    }

    #[inline(always)]
    pub(crate) fn id(&self) -> GroupId {
        self.id
    }

    /// Returns this task's rank in the group, from 0.
    #[inline(always)]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the number of members.
    #[inline(always)]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the task id of the member with this rank.
    pub fn tid_of(&self, rank: usize) -> Result<u32> {
        raw::outside()?;
        ours(process::tid_of(self.id, rank_number(rank)))
    }

    /// Returns the rank of a task. Fails with [`ErrorKind::Task`](crate::ErrorKind::Task) if it is not a member.
    pub fn rank_of(&self, tid: u32) -> Result<usize> {
        raw::outside()?;
        let tid = i32::try_from(tid).unwrap_or(i32::MAX);
        ours(process::rank_of(self.id, tid)).map(|rank| rank as usize)
    }

    /// Returns a text that says which path messages to a member take, and why.
    pub fn path(&self, rank: usize) -> Result<String> {
        raw::outside()?;
        ours(process::path(self.id, rank_number(rank)))
    }

    /// Makes a group with the same members and ranks. A library uses one to keep its messages separate from its caller's.
    /// Every member calls this. Blocks.
    pub fn dup(&self) -> Result<Group<'t>> {
        raw::outside()?;
        Group::of(ours(process::duplicate(self.id))?)
    }

    /// Makes a group of the members with these ranks, in this order. Only these members call it. Blocks.
    pub fn select(&self, ranks: &[usize]) -> Result<Group<'t>> {
        raw::outside()?;
        if ranks.is_empty() {
            return Err(Error::argument("a new group needs at least one rank"));
        }
        let ranks: Vec<i32> = ranks.iter().map(|&rank| rank_number(rank)).collect();
        Group::of(ours(process::select(self.id, &ranks, None))?)
    }

    /// Makes a group of the members that pass the same colour, ordered by (`key`, rank). Every member calls this. A member
    /// that passes `None` as colour joins no group and gets `None`. Blocks.
    ///
    /// ```
    /// let task = regatta::init()?;
    /// let world = task.world();
    /// let (row, column) = (world.rank() / 4, world.rank() % 4);
    /// let row = world.split(Some(row as u32), column as i32)?.expect("a colour was given");
    /// assert_eq!(row.rank(), column);
    /// # Ok::<(), regatta::Error>(())
    /// ```
    pub fn split(&self, colour: Option<u32>, key: i32) -> Result<Option<Group<'t>>> {
        raw::outside()?;
        let colour = match colour {
            None => process::NONE,
            Some(colour) => i32::try_from(colour).map_err(|_| {
                Error::argument(format!("colour {colour}: colours are 0 to 2147483647"))
            })?,
        };
        let made = ours(process::split(self.id, colour, key))?;
        made.map(Group::of).transpose()
    }

    /// Makes a group of the living members, in rank order, after a member has died. Every living member calls this. Blocks.
    pub fn shrink(&self) -> Result<Group<'t>> {
        raw::outside()?;
        Group::of(ours(process::shrink(self.id))?)
    }

    /// Ends all operations in this group at every member with [`ErrorKind::Revoked`](crate::ErrorKind::Revoked): blocked
    /// calls, started operations and all later calls. Only [`shrink`](Group::shrink), [`agree`](Group::agree) and queries
    /// about ranks still work. One or several members call this. Does not block.
    pub fn revoke(&self) -> Result<()> {
        raw::outside()?;
        ours(process::revoke(self.id))
    }

    /// Returns whether this task knows that a member has revoked the group.
    pub fn is_revoked(&self) -> Result<bool> {
        raw::outside()?;
        ours(process::is_revoked(self.id))
    }

    /// Agrees on a flag: returns the bitwise AND of the flags of all members. Every living member calls this. All members
    /// that survive get the same result, even if members die during the call. The group may be revoked. Blocks.
    ///
    /// The second value is [`ErrorKind::Dead`](crate::ErrorKind::Dead) if a member has died and not all members had
    /// [acknowledged](Group::acknowledge_dead) that before they called. The flag is agreed on nevertheless.
    pub fn agree(&self, flag: i32) -> Result<(i32, Result<()>)> {
        raw::outside()?;
        let (flag, error) = ours(process::agree(self.id, flag))?;
        Ok((flag, ours(error.map_or(Ok(()), Err))))
    }

    /// Acknowledges all deaths in the group that this task knows of. Returns the number of dead members.
    ///
    /// A receive from [`Source::Any`](crate::Source::Any) fails with [`ErrorKind::Dead`](crate::ErrorKind::Dead) while the
    /// group has a dead member that this task has not acknowledged. Afterwards it matches messages of the living members.
    pub fn acknowledge_dead(&self) -> Result<usize> {
        raw::outside()?;
        ours(process::acknowledge_dead(self.id)).map(|dead| dead as usize)
    }

    /// Returns the ranks of the dead members that this task knows of, because its host knows it or because an earlier call
    /// in this group returned that.
    pub fn dead(&self) -> Result<Vec<usize>> {
        raw::outside()?;
        let ranks = ours(process::dead_members(self.id))?;
        Ok(ranks.into_iter().map(|rank| rank as usize).collect())
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        // Regatta cannot be called inside an operator: such a group is kept until the task leaves.
        let made = self.id != GroupId::WORLD && self.id.channel().is_none();
        if made && raw::outside().is_ok() {
            let _ = process::free(self.id);
        }
    }
}
