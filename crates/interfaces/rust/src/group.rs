//! Groups: ordered sets of tasks, whose messages are kept apart from each other's.

use std::marker::PhantomData;

use regatta_process::{self as process, GroupId};

use crate::error::{Result, ours};
use crate::select::rank_number;
use crate::{Error, Task, raw};

/// An ordered set of tasks, of which this is one. Messages are sent and collectives called in a
/// group; what is sent in one is never received in another.
///
/// Groups other than the world are made together: each call below that makes one is called by
/// every task it names, and blocks until they all have. Dropping a group gives it up in this task
/// alone; messages still on their way in it are never received.
///
/// Any thread may use a group. Several threads that call collectives of one group must agree on
/// an order themselves.
#[derive(Debug)]
pub struct Group<'t> {
    id: GroupId,
    rank: usize,
    size: usize,
    pub(crate) task: PhantomData<&'t Task>,
}

impl<'t> Group<'t> {
    pub(crate) fn world(_task: &'t Task) -> Group<'t> {
        // Both are known while the task is joined; inside an operator nothing is.
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

    /// This task's place in the group, from 0.
    #[inline(always)]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many members the group has.
    #[inline(always)]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The task id of the member with this rank.
    pub fn tid_of(&self, rank: usize) -> Result<u32> {
        raw::outside()?;
        ours(process::tid_of(self.id, rank_number(rank)))
    }

    /// The rank of a task; [`ErrorKind::Task`](crate::ErrorKind::Task) when it is not a member.
    pub fn rank_of(&self, tid: u32) -> Result<usize> {
        raw::outside()?;
        let tid = i32::try_from(tid).unwrap_or(i32::MAX);
        ours(process::rank_of(self.id, tid)).map(|rank| rank as usize)
    }

    /// Which path messages to a member take, and why, in words.
    pub fn path(&self, rank: usize) -> Result<String> {
        raw::outside()?;
        ours(process::path(self.id, rank_number(rank)))
    }

    /// A group of its own with these members: a library makes one, so that its messages and
    /// its caller's never meet. Every member calls. Blocks.
    pub fn dup(&self) -> Result<Group<'t>> {
        raw::outside()?;
        Group::of(ours(process::duplicate(self.id))?)
    }

    /// The members with these ranks, in that order, as a group. Only they call. Blocks.
    pub fn select(&self, ranks: &[usize]) -> Result<Group<'t>> {
        raw::outside()?;
        if ranks.is_empty() {
            return Err(Error::argument("a new group needs at least one rank"));
        }
        let ranks: Vec<i32> = ranks.iter().map(|&rank| rank_number(rank)).collect();
        Group::of(ours(process::select(self.id, &ranks, None))?)
    }

    /// A group of the members that give the same colour, ordered by (`key`, rank). Every member
    /// calls; who gives `None` joins nothing and gets `None`. Blocks.
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

    /// The members that are still alive, in rank order, as a group. Every one of them calls. It is for
    /// groups of which a member has died. Blocks.
    pub fn shrink(&self) -> Result<Group<'t>> {
        raw::outside()?;
        Group::of(ours(process::shrink(self.id))?)
    }

    /// End all that is done in this group, by whichever member, wherever it is in that: with
    /// [`ErrorKind::Revoked`](crate::ErrorKind::Revoked), which later calls have too. Only
    /// [`shrink`](Group::shrink) and [`agree`](Group::agree) are left. One member calls, or several.
    pub fn revoke(&self) -> Result<()> {
        raw::outside()?;
        ours(process::revoke(self.id))
    }

    /// Has a member revoked this group, as far as is known here now?
    pub fn is_revoked(&self) -> Result<bool> {
        raw::outside()?;
        ours(process::is_revoked(self.id))
    }

    /// The bits that the flags of all members have in common. Every member that lives calls; all
    /// have the same result, whoever dies meanwhile, in a group that is revoked, too. Blocks.
    ///
    /// [`ErrorKind::Dead`](crate::ErrorKind::Dead): a member has died that not all had
    /// [acknowledged](Group::acknowledge_dead). All have this error, and the flag comes with it.
    pub fn agree(&self, flag: i32) -> Result<(i32, Result<()>)> {
        raw::outside()?;
        let (flag, error) = ours(process::agree(self.id, flag))?;
        Ok((flag, ours(error.map_or(Ok(()), Err))))
    }

    /// Let receives from [`Source::Any`](crate::Source::Any) go on among the living: they fail with
    /// [`ErrorKind::Dead`](crate::ErrorKind::Dead) while the group has dead members this task has
    /// not acknowledged. Returns how many members are dead.
    pub fn acknowledge_dead(&self) -> Result<usize> {
        raw::outside()?;
        ours(process::acknowledge_dead(self.id)).map(|dead| dead as usize)
    }

    /// The ranks of members that have died, as far as this task knows: by itself, or because a
    /// call in this group has said so.
    pub fn dead(&self) -> Result<Vec<usize>> {
        raw::outside()?;
        let ranks = ours(process::dead_members(self.id))?;
        Ok(ranks.into_iter().map(|rank| rank as usize).collect())
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        // Inside an operator it is kept until the task leaves.
        let made = self.id != GroupId::WORLD && self.id.channel().is_none();
        if made && raw::outside().is_ok() {
            let _ = process::free(self.id);
        }
    }
}
