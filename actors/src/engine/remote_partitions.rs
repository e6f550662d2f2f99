//! Following: the node that has the house reads the partitions of other nodes from the store,
//! since it answers what is about all merchants. It folds their Records as their owners do, and
//! writes nothing.
//!
//! A question is answered from what the owners had acknowledged before it came: their heads are
//! read first, from the database that acknowledges.

use std::sync::Arc;
use std::time::Instant;

use tokio::task::spawn_blocking;

use super::shard::Shard;
use super::shards::Role;
use super::{Engine, OpenError};
use derived::read_model::FOLLOWED_MAX;
use derived::records::LoadError;
use store::{Part, Partition};

/// State of the following of other nodes' partitions.
#[derive(Default)]
pub(super) struct Following {
    /// When the runs of the indexes were looked for.
    indexes_at: Option<Instant>,
}

impl Engine {
    /// Follows every partition that the process does not serve, from now on. Does nothing for those
    /// that it follows.
    pub async fn follow_others(&self) -> Result<(), OpenError> {
        let mut following = self.following.lock().await;
        for partition in self.shards.with_role(Role::Absent) {
            let part = Part::reading(Arc::clone(&self.store), partition);
            let unread = self.unread(&part);
            let read_model = spawn_blocking(move || unread.followed()).await.expect("opening does not panic")?;
            let context = self.context(self.journal.of(part.tenure()), part, Arc::new(read_model));
            let shard = Shard::open(context, &self.extents).await?;
            self.shards.put_unless_owned(partition, Role::Follower, shard);
            following.indexes_at.get_or_insert_with(Instant::now);
        }
        Ok(())
    }

    /// Follows no partition any more.
    pub async fn follow_none(&self) -> Result<(), OpenError> {
        let mut following = self.following.lock().await;
        for partition in self.shards.with_role(Role::Follower) {
            self.shards.put_unless_owned(partition, Role::Absent, self.absent(partition).await?);
        }
        following.indexes_at = None;
        Ok(())
    }

    /// Whether the process serves or follows every partition, so that it can answer what is about
    /// all merchants.
    pub fn has_all(&self) -> bool {
        self.missing().is_empty()
    }

    /// The partitions that the process neither serves nor follows.
    pub fn missing(&self) -> Vec<Partition> {
        self.shards.with_role(Role::Absent)
    }

    /// Folds what the owners of followed partitions have acknowledged until now.
    pub async fn catch_up(&self) -> Result<(), LoadError> {
        let mut following = self.following.lock().await;
        let followed = self.shards.with_role(Role::Follower);
        if followed.is_empty() {
            return Ok(());
        }
        let renews_indexes = following.indexes_at.is_none_or(|since| since.elapsed() >= FOLLOWED_MAX);
        let shards: Vec<Arc<Shard>> = followed.iter().map(|partition| self.shards.at(*partition)).collect();
        let store = Arc::clone(&self.store);
        let folded = spawn_blocking(move || -> Result<(), LoadError> {
            let heads = store.heads(&followed)?;
            for (shard, head) in shards.iter().zip(heads) {
                shard.read_model().follow(head)?;
                if renews_indexes {
                    shard.read_model().follow_index()?;
                }
            }
            Ok(())
        });
        folded.await.expect("folding does not panic")?;
        if renews_indexes {
            following.indexes_at = Some(Instant::now());
        }
        Ok(())
    }
}
