//! Tests on a real server. They print a note where PostgreSQL is missing.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::testkit::conformance;
use crate::testkit::postgres::{Pooler, PostgresServer, programs, shared};
use crate::{BlockHash, Part};

const PARTITION: Partition = Partition(0);

fn options(address: &str) -> PostgresOptions {
    PostgresOptions::at(PostgresAddress::parse(address).unwrap())
}

fn open(address: &str) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::open(&options(address)).unwrap())
}

fn open_within(address: &str, takeover: Duration) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::open(&PostgresOptions { takeover, ..options(address) }).unwrap())
}

fn take(store: &Arc<PostgresStore>) -> Part {
    Part::take(store.clone(), PARTITION).unwrap()
}

fn block(part: &Part, number: u64) -> Block {
    conformance::block_after(part.head().unwrap(), vec![conformance::bytes(number, 300)])
}

#[test]
fn the_store_conforms() {
    let Some(server) = shared() else { return };
    conformance::all(|| {
        let address = server.database();
        move || -> Arc<dyn Store> { open(&address) }
    });
}

#[test]
fn addresses_are_parsed_and_the_password_is_shown_nowhere() {
    let parsed = PostgresAddress::parse("postgres://ana:secret@db1,db2:6432/books?sslmode=verify-full").unwrap();
    assert_eq!(parsed.place(), "postgres://db1:5432,db2:6432/books");
    assert!(!format!("{:?}", options("postgres://ana:secret@db/books")).contains("secret"));
    for wrong in [
        "postgres://db:port/books",
        "postgres:///books",
        "postgres://db/books?sslmode=maybe",
        "postgres://ana:a@b/c@db/books",
    ] {
        let error = PostgresAddress::parse(wrong).unwrap_err();
        assert!(!error.is_empty(), "{wrong}");
    }
}

/// Two processes on one database: whatever the former owner writes is refused, also what it began
/// before the take.
#[test]
fn of_two_processes_the_former_owner_writes_nothing() {
    let Some(server) = shared() else { return };
    let address = server.database();
    let (former, owner) = (open(&address), open(&address));
    let part = take(&former);
    part.append(&block(&part, 1)).unwrap();
    part.put_state(b"key", b"former").unwrap();
    let late = block(&part, 2);
    part.put_state_lazily(b"lazy", b"late").unwrap();
    let taken = take(&owner);
    for refused in [part.append(&late).map(drop), part.put_state(b"key", b"late"), part.put_file("run", b"late")] {
        assert!(matches!(refused, Err(StoreError::Fenced { .. })), "{refused:?}");
    }
    assert!(former.is_superseded() && !former.is_current());
    assert_eq!((former.commit_troubles().0, owner.commit_troubles()), (1, (0, 0)));
    assert!(owner.is_current() && !owner.is_superseded());
    drop((part, former));
    assert_eq!(taken.head().unwrap().next, Sequence(2));
    assert_eq!(taken.state(b"key").unwrap(), Some(b"former".to_vec()));
    assert_eq!(taken.state(b"lazy").unwrap(), None, "what waited in memory is not written late");
    assert_eq!(taken.files().unwrap(), []);
    taken.append(&block(&taken, 3)).unwrap();
}

/// A write that a former owner left open in the database is ended by the take, or done before it.
#[test]
fn a_take_waits_for_no_session_of_the_former_owner() {
    let Some(server) = shared() else { return };
    let address = server.database();
    let (former, owner) = (open(&address), open(&address));
    let part = take(&former);
    let (written, begun) = mpsc::channel();
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            part.put_file_in_parts("run", &mut |file| {
                file.write_all(&vec![7; 3 << 20])?;
                written.send(()).unwrap();
                // The transaction stays open until the successor has taken the partition.
                while !former.is_superseded() {
                    std::thread::sleep(Duration::from_millis(20));
                }
                file.write_all(b"late")
            })
        });
        begun.recv().unwrap();
        let taken = take(&owner);
        assert_eq!(taken.head().unwrap(), Head::EMPTY);
        assert!(writing.join().unwrap().is_err());
        assert_eq!(taken.files().unwrap(), []);
    });
}

/// A block that was written, and whose transaction is still open, is in the journal before the
/// partition has another owner, or never.
#[test]
fn a_take_comes_after_every_write_that_is_under_way() {
    let Some(server) = shared() else { return };
    let address = server.database();
    let (former, owner) = (open(&address), open(&address));
    let part = take(&former);
    let late = block(&part, 1);
    let parts = &former.parts;
    // Under another name the take does not find the session, and can't end it.
    let step = |sql: &'static str| {
        parts.wait_for_commit(parts.commits.once(&async |link: &Link| link.run(sql).await)).unwrap()
    };
    step("SET application_name = 'unknown'");
    step("BEGIN");
    part.append(&late).unwrap();
    std::thread::scope(|scope| {
        let taking = scope.spawn(|| take(&owner).head().unwrap());
        std::thread::sleep(Duration::from_millis(2_500));
        let was_waiting = !taking.is_finished();
        step("COMMIT");
        let head = taking.join().unwrap();
        assert_eq!(head, Head::after(&late, late.hash()), "the new owner knows every block of the former one");
        assert!(was_waiting);
    });
}

/// Owners change while each of them appends as fast as it can; there is one chain, and all that was
/// acknowledged is in it.
#[test]
fn three_owners_make_one_chain() {
    let Some(server) = shared() else { return };
    let address = server.database();
    let rounds = 8;
    let acknowledged: Vec<BlockHash> = std::thread::scope(|scope| {
        let owners: Vec<_> = (0..3u64)
            .map(|number| {
                let address = &address;
                scope.spawn(move || {
                    let mut durable = Vec::new();
                    for round in 0..rounds {
                        let store = open(address);
                        let Some(tenure) = store.take(PARTITION, store.epoch(PARTITION).unwrap()).unwrap() else {
                            continue;
                        };
                        let part = Part::of(store, tenure);
                        for count in 0..20 {
                            let block = block(&part, number * 10_000 + round * 100 + count);
                            match part.append(&block) {
                                Ok(hash) => durable.push(hash),
                                Err(StoreError::Fenced { .. }) => break,
                                // Another owner has appended since the head was read.
                                Err(StoreError::OutOfOrder { .. }) => panic!("an owner's head moved"),
                                Err(error) => panic!("{error}"),
                            }
                        }
                    }
                    durable
                })
            })
            .collect();
        owners.into_iter().flat_map(|owner| owner.join().unwrap()).collect()
    });
    let store = open(&address);
    let reader = Part::reading(store.clone(), PARTITION);
    let chain: Vec<BlockHash> = reader.blocks(Sequence(1)).map(|block| block.unwrap().hash()).collect();
    assert!(acknowledged.iter().all(|hash| chain.contains(hash)));
    let mut once = chain.clone();
    once.sort_by_key(|hash| hash.0);
    once.dedup();
    assert_eq!(once.len(), chain.len());
    assert!(acknowledged.len() > 20, "{}", acknowledged.len());
}

/// A connection that is ended in the middle of commits loses nothing, and writes nothing twice.
#[test]
fn sessions_are_ended_and_every_block_is_there_once() {
    let Some(server) = shared() else { return };
    let address = server.database();
    let database = address.rsplit('/').next().unwrap().to_owned();
    let store = open(&address);
    let part = take(&store);
    let appended = std::thread::scope(|scope| {
        let appending = scope.spawn(|| (0..300).map(|number| part.append(&block(&part, number)).unwrap()).collect());
        while !appending.is_finished() {
            let end =
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE 'centavo-%'
                AND datname = current_database()";
            server.run_in(&database, end);
            std::thread::sleep(Duration::from_millis(30));
        }
        appending.join().unwrap()
    });
    let chain: Vec<BlockHash> = part.blocks(Sequence(1)).map(|block| block.unwrap().hash()).collect();
    let appended: Vec<BlockHash> = appended;
    assert_eq!(chain, appended);
    let (fenced, unknown) = store.commit_troubles();
    assert!(fenced == 0 && unknown > 0, "{fenced} {unknown}");
}

/// PostgreSQL compiles what it takes for dear, such as a scan that is switched off: that takes
/// longer than all the work of a picture, each time.
#[test]
fn no_statement_is_compiled() {
    let Some(server) = shared() else { return };
    let parts = &open(&server.database()).parts;
    let plan: &'static str = format!("EXPLAIN {}", nodes::PICTURE.replace("$1", "15000").replace("$2", "0")).leak();
    let plan = parts.wait(parts.beats.try_once(async |link| link.rows(plan, &[]).await)).unwrap();
    let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
    assert!(plan.len() > 3 && !plan.iter().any(|line| line.contains("JIT")), "{plan:#?}");
}

/// Beats. A successor may have ended the session; then the next try makes another.
fn beat(store: &PostgresStore) {
    while store.parts.wait(store.parts.beat(&store.parts.beats)).is_err() {}
}

/// Who gives a partition up goes on with its others, writes nothing in this one, and may have it
/// again.
#[test]
fn a_partition_goes_from_one_process_to_another_and_back() {
    let Some(server) = shared() else { return };
    let address = server.database();
    let (former, owner) = (open(&address), open(&address));
    let (part, other_part) = (take(&former), Part::take(former.clone(), Partition(1)).unwrap());
    let first = block(&part, 1);
    part.append(&first).unwrap();
    part.put_state_lazily(b"key", b"last").unwrap();
    part.release().unwrap();
    let late = block(&part, 2);
    let is_refused = |part: &Part| {
        let late = [part.append(&late).map(drop), part.put_state(b"key", b"late"), part.put_file("run", b"late")];
        late.iter().all(|refused| matches!(refused, Err(StoreError::Fenced { .. })))
    };
    assert!(is_refused(&part), "nobody has it, and yet this one may write it no more");
    assert_eq!(part.append(&first).unwrap(), first.hash(), "what was durable before is durable");
    let taken = take(&owner);
    assert_eq!(taken.tenure().epoch, Epoch(2));
    beat(&former);
    assert!(is_refused(&part));
    assert!(former.is_current() && !former.is_superseded(), "it was not taken against its will");
    let other = Block { partition: Partition(1), ..block(&other_part, 3) };
    let both = [(other_part.tenure(), &other), (part.tenure(), &late)];
    assert!(matches!(former.append(&both).unwrap()[..], [AppendOutcome::Durable(_), AppendOutcome::Fenced]));
    assert!(!former.is_superseded());
    assert_eq!(taken.state(b"key").unwrap(), Some(b"last".to_vec()));
    taken.append(&block(&taken, 4)).unwrap();
    taken.release().unwrap();
    let again = take(&former);
    assert_eq!(again.tenure().epoch, Epoch(3));
    again.append(&block(&again, 5)).unwrap();
    assert!(is_refused(&part), "an earlier tenure stays ended");
    assert!(!former.is_superseded());
    take(&owner);
    beat(&former);
    assert!(former.is_superseded(), "this time it was");
}

/// A process that never learns what came of a take, or of giving up, has nothing in the end.
#[test]
fn a_take_or_a_release_without_an_answer_leaves_the_partition_free() {
    let Some(server) = shared() else { return };
    let address = server.database();
    let (one, other) = (open(&address), open(&address));
    let owner = |store: &PostgresStore| store.picture().unwrap().partitions[0].owner.clone();
    let tenure = take(&one).tenure();
    one.parts.lease.note_take(tenure, None);
    let part = Part::of(one.clone(), tenure);
    assert!(matches!(part.append(&block(&part, 1)), Err(StoreError::Fenced { .. })));
    let mut watch = OwnerWatch::default();
    assert_eq!(one.look(&mut watch, PARTITION).unwrap(), Some(Epoch(1)));
    assert_eq!(owner(&other).as_deref(), Some(one.process()));
    assert_eq!(owner(&one), None);
    assert_eq!(owner(&other), None, "the first one has written to the database");
    let tenure = one.take(PARTITION, Epoch(1)).unwrap().unwrap();
    assert_eq!((tenure.epoch, owner(&one).as_deref()), (Epoch(2), Some(one.process())));
    one.parts.lease.left(tenure);
    // While it asks again, nothing is given up behind its back.
    one.parts.lease.asks(PARTITION);
    assert_eq!(owner(&one).as_deref(), Some(one.process()));
    assert_eq!(one.take(PARTITION, Epoch(1)).unwrap(), None, "an epoch that was given up is not had again");
    assert_eq!((owner(&one), owner(&other)), (None, None));
    assert!(!one.is_superseded());
}

#[test]
fn all_nodes_see_the_same_picture() {
    let Some(server) = shared() else { return };
    let address = server.database();
    let node = |at: &str| PostgresOptions { node: Some(at.to_owned()), about: at.to_owned(), ..options(&address) };
    let (one, other) = (PostgresStore::open(&node("a:1")).unwrap(), PostgresStore::open(&node("b:2")).unwrap());
    let alone = open(&address);
    let shown =
        |store: &PostgresStore| store.picture().unwrap().nodes.iter().filter(|node| node.address.is_some()).count();
    assert_eq!(shown(&one), 0, "a process that may be refused yet is no node");
    one.join().unwrap();
    other.join().unwrap();
    assert_eq!(shown(&one), 2);
    assert_eq!(one.picture().unwrap().partitions, []);
    let part = take(&alone);
    part.append(&block(&part, 1)).unwrap();
    let picture = one.picture().unwrap();
    let seen = PartitionSeen {
        partition: PARTITION,
        epoch: Epoch(1),
        owner: Some(alone.process().to_owned()),
        next: Sequence(2),
    };
    assert_eq!(picture.partitions, [seen]);
    let picture = picture.with_all([Partition(0), Partition(1)].into_iter());
    let never = PartitionSeen { partition: Partition(1), epoch: Epoch::NONE, owner: None, next: Sequence::FIRST };
    assert_eq!((picture.partitions.len(), picture.partitions.last()), (2, Some(&never)));
    let node = |picture: &Picture, store: &PostgresStore| {
        picture.nodes.iter().find(|node| node.process == store.process()).cloned().unwrap()
    };
    assert_eq!(node(&picture, &alone).address, None);
    let before = node(&picture, &other);
    assert_eq!((before.address.as_deref(), before.about.as_str(), before.is_leaving), (Some("b:2"), "b:2", false));
    other.leave().unwrap();
    beat(&other);
    let after = node(&one.picture().unwrap(), &other);
    assert!(after.beat >= before.beat + 2 && after.is_leaving);
    assert!(!node(&one.picture().unwrap(), &one).is_leaving);
    let database = address.rsplit('/').next().unwrap().to_owned();
    server.run_in(&database, "UPDATE centavo.node SET beaten_at = now() - interval '2 hours'");
    let seen = one.picture().unwrap().nodes;
    assert!(seen.iter().any(|node| node.process == alone.process()), "it owns a partition");
    server.run_in(&database, "UPDATE centavo.node SET beaten_at = now() - interval '2 hours'");
    assert!(one.picture().unwrap().nodes.len() < 3, "who has ended long ago is not seen");
}

/// An owner that was taken to be gone and wakes up keeps the partition, or knows that it was taken.
#[test]
fn nothing_is_taken_from_an_owner_whose_beat_has_moved() {
    let Some(server) = shared() else { return };
    let address = server.database();
    // Nobody beats by itself for a minute.
    let pace = Duration::from_secs(300);
    let (former, owner) = (open_within(&address, pace), open_within(&address, pace));
    let part = take(&former);
    let beaten = || {
        let nodes = owner.picture().unwrap().nodes;
        nodes.iter().find(|node| node.process == former.process()).unwrap().beat
    };
    let seen = beaten();
    beat(&former);
    assert_eq!(owner.take_from(PARTITION, Epoch(1), Some(seen)).unwrap(), None);
    let (seen, parts) = (beaten(), &former.parts);
    let step = |sql: &'static str| parts.wait(parts.writes.once(&async |link: &Link| link.run(sql).await)).unwrap();
    // Under another name the take does not find the session, and can't end it.
    step("SET application_name = 'unknown'");
    step("BEGIN");
    step("UPDATE node SET beat = beat + 1");
    std::thread::scope(|scope| {
        let taking = scope.spawn(|| owner.take_from(PARTITION, Epoch(1), Some(seen)).unwrap());
        std::thread::sleep(Duration::from_millis(300));
        let was_waiting = !taking.is_finished();
        step("COMMIT");
        assert_eq!(taking.join().unwrap(), None, "a beat that is under way counts");
        assert!(was_waiting);
    });
    part.append(&block(&part, 1)).unwrap();
    let taken = owner.take_from(PARTITION, Epoch(1), Some(beaten())).unwrap();
    assert_eq!(taken.map(|tenure| tenure.epoch), Some(Epoch(2)));
    beat(&former);
    assert!(former.is_superseded());
}

#[test]
fn a_process_knows_the_time_of_the_database() {
    let Some(server) = shared() else { return };
    let address = server.database();
    let database = address.rsplit('/').next().unwrap().to_owned();
    open(&address);
    let ahead = "CREATE FUNCTION centavo.clock_timestamp() RETURNS timestamptz LANGUAGE sql
        AS 'SELECT pg_catalog.clock_timestamp() + interval ''1 day''";
    server.run_in(&database, &format!("{ahead}'"));
    let hours = open(&address).ahead_ms() / 3_600_000;
    assert!((23..=24).contains(&hours), "{hours}");
}

#[test]
fn an_owner_is_gone_when_its_beat_stands_still() {
    let Some(server) = shared() else { return };
    let address = server.database();
    let takeover = Duration::from_secs(4);
    let (owner, waiting) = (open_within(&address, takeover), open_within(&address, takeover));
    let mut watch = OwnerWatch::default();
    assert_eq!(waiting.look(&mut watch, PARTITION).unwrap(), Some(Epoch::NONE), "nobody has taken it");
    let part = take(&owner);
    let begun = std::time::Instant::now();
    while begun.elapsed() < takeover * 2 {
        assert_eq!(waiting.look(&mut watch, PARTITION).unwrap(), None, "the owner lives");
        std::thread::sleep(waiting.pace());
    }
    assert!(watch.owner().is_some_and(|owner| owner.starts_with("centavo-")));
    part.release().unwrap();
    assert_eq!(waiting.look(&mut watch, PARTITION).unwrap(), Some(Epoch(1)), "given up, it is free at once");
    drop(part);
    let part = take(&owner);
    let parts = Arc::clone(&owner.parts);
    drop((part, owner));
    let mut watch = OwnerWatch::default();
    let seen = loop {
        match waiting.look(&mut watch, PARTITION).unwrap() {
            Some(epoch) => break epoch,
            None => assert!(!parts.lease.is_current() || watch.owner().is_some()),
        }
        std::thread::sleep(waiting.pace());
    };
    assert_eq!(seen, Epoch(2));
    assert!(!parts.lease.is_current(), "who is taken to be gone answers nothing any more");
}

/// A plan that reads the table of blocks from its beginning would grow slower with every commit.
#[test]
fn no_statement_of_the_journal_reads_a_whole_table() {
    let Some(server) = shared() else { return };
    let address = server.database();
    let database = address.rsplit('/').next().unwrap().to_owned();
    let part = take(&open(&address));
    for number in 0..20 {
        part.append(&block(&part, number)).unwrap();
        part.record(Sequence(number + 1)).unwrap().unwrap();
    }
    part.blocks(Sequence(1)).for_each(|block| drop(block.unwrap()));
    part.put_state(b"key", b"value").unwrap();
    let scans =
        "SELECT relname || ' ' || seq_scan FROM pg_stat_user_tables WHERE relname IN ('block', 'chunk') ORDER BY 1";
    // The statistics are written when a session has been idle, or ends.
    drop(part);
    std::thread::sleep(Duration::from_millis(1_200));
    // The one is the making of the index.
    assert_eq!(server.run_in(&database, scans), "block 1\nchunk 1");
}

#[test]
fn a_database_that_may_lose_what_it_acknowledged_is_refused() {
    let Some(programs) = programs() else { return };
    let server = PostgresServer::start(&programs, &["fsync = off"]);
    let address = server.database();
    let demands = PostgresDemands { allows_fsync_off: true, ..PostgresDemands::default() };
    let opened = |demands| PostgresStore::open(&PostgresOptions { demands, ..options(&address) });
    let refused = opened(PostgresDemands::default()).unwrap_err().to_string();
    assert!(refused.contains("fsync is off"), "{refused}");
    let refused = opened(PostgresDemands { standby: true, ..demands }).unwrap_err().to_string();
    assert!(refused.contains("synchronous_standby_names is empty"), "{refused}");
    let store = opened(demands).unwrap();
    assert!(store.is_current());
    // Also while it is served.
    let takeover = Duration::from_secs(1);
    let store = PostgresStore::open(&PostgresOptions { demands, takeover, ..options(&address) }).unwrap();
    server.set(&["full_page_writes = off"]);
    server.reload();
    std::thread::sleep(takeover * 2);
    assert!(!store.is_current());
}

#[test]
fn a_snapshot_sees_nothing_that_comes_later_and_makes_no_tables() {
    let Some(server) = shared() else { return };
    let address = server.database();
    let refused = PostgresStore::open_snapshot(&options(&address)).unwrap_err();
    assert!(matches!(refused, StoreError::NoStore { .. }), "{refused}");
    let part = take(&open(&address));
    part.append(&block(&part, 1)).unwrap();
    let reader = Part::reading(Arc::new(PostgresStore::open_snapshot(&options(&address)).unwrap()), PARTITION);
    assert_eq!(reader.head().unwrap().next, Sequence(2));
    part.append(&block(&part, 2)).unwrap();
    part.put_state(b"key", b"value").unwrap();
    assert_eq!(reader.head().unwrap().next, Sequence(2));
    assert_eq!(reader.state(b"key").unwrap(), None);
    assert!(reader.put_state(b"key", b"other").is_err());
}

#[test]
fn damage_is_told_with_its_place() {
    let Some(server) = shared() else { return };
    let address = server.database();
    let database = address.rsplit('/').next().unwrap().to_owned();
    let part = take(&open(&address));
    (0..5).for_each(|number| assert!(part.append(&block(&part, number)).is_ok()));
    let is_whole = || part.blocks(Sequence(1)).all(|block| block.is_ok());
    assert!(is_whole());
    for damage in [
        "UPDATE centavo.block SET hash = previous WHERE first = 3",
        "UPDATE centavo.chunk SET value = set_byte(value, 60, get_byte(value, 60) # 1)",
        "DELETE FROM centavo.block WHERE first = 2",
        "DELETE FROM centavo.chunk",
    ] {
        let backup = "CREATE TABLE b AS SELECT * FROM centavo.block; CREATE TABLE c AS SELECT * FROM centavo.chunk";
        server.run_in(&database, backup);
        server.run_in(&database, damage);
        assert!(!is_whole(), "{damage}");
        let error = part.blocks(Sequence(1)).find_map(Result::err).unwrap();
        assert!(matches!(error, StoreError::Damaged { sequence: Some(_), .. }), "{damage}: {error}");
        let back = "DELETE FROM centavo.block; INSERT INTO centavo.block SELECT * FROM b; DROP TABLE b;
            DELETE FROM centavo.chunk; INSERT INTO centavo.chunk SELECT * FROM c; DROP TABLE c";
        server.run_in(&database, back);
        assert!(is_whole());
    }
}

/// An older timeline, or a journal that lacks its end, is named at the start, and taken only with
/// an operator's word, which counts once.
#[test]
fn a_database_that_is_behind_what_was_seen_is_refused() {
    let Some(server) = shared() else { return };
    let (address, folder) = (server.database(), tempfile::tempdir().unwrap());
    let name = address.rsplit('/').next().unwrap();
    let seen = PostgresOptions { seen_in: Some(folder.path().to_owned()), ..options(&address) };
    let accepting = |record: u64| {
        let accept_loss_after = Some(BTreeMap::from([(PARTITION, Sequence(record))]));
        PostgresOptions { accept_loss_after, ..seen.clone() }
    };
    let store = Arc::new(PostgresStore::open(&seen).unwrap());
    let part = take(&store);
    for number in 1..=3 {
        part.append(&block(&part, number)).unwrap();
    }
    beat(&store);
    drop((part, store));
    drop(PostgresStore::open(&seen).unwrap());
    let refusal = |options: &PostgresOptions| match PostgresStore::open(options) {
        Err(StoreError::Behind { detail, .. }) => detail,
        other => panic!("{other:?}"),
    };
    let lose_last = || {
        let last = "(SELECT max(first) FROM centavo.block)";
        let key = format!("decode('0000', 'hex') || int8send({last})");
        server.run_in(name, &format!("DELETE FROM centavo.chunk WHERE key >= {key}"));
        server.run_in(name, &format!("DELETE FROM centavo.block WHERE first = {last}"));
    };
    lose_last();
    let message = refusal(&seen);
    let place = format!("127.0.0.1:{}", server.port());
    for word in [place.as_str(), "Records 0=2", "Records 0=3", "--accept-loss-after 0=2", "database-seen"] {
        assert!(message.contains(word), "{word}: {message}");
    }
    refusal(&accepting(3));
    drop(PostgresStore::open(&accepting(2)).unwrap());
    drop(PostgresStore::open(&seen).unwrap());
    // The same word is none for another loss.
    let store = Arc::new(PostgresStore::open(&seen).unwrap());
    let part = take(&store);
    part.append(&block(&part, 4)).unwrap();
    beat(&store);
    drop((part, store));
    lose_last();
    refusal(&accepting(2));
    drop(PostgresStore::open(&accepting(1)).unwrap());
    let path = folder.path().join("database-seen");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("timeline 1\n", "timeline 2\n")).unwrap();
    let message = refusal(&seen);
    assert!(message.contains("on timeline 1") && message.contains("on timeline 2"), "{message}");
}

/// Of two servers that take writes the one on the newer timeline is used, whatever their order, by
/// a process that knows nothing yet.
#[test]
fn a_start_and_a_snapshot_ask_all_hosts() {
    let Some(programs) = programs() else { return };
    let former = PostgresServer::start(&programs, &[]);
    let address = former.database();
    let store = Arc::new(PostgresStore::open(&options(&address)).unwrap());
    let part = take(&store);
    part.append(&block(&part, 1)).unwrap();
    let promoted = former.standby("promoted");
    promoted.promote();
    part.append(&block(&part, 2)).unwrap();
    drop((part, store));
    let user = address.split('@').next().unwrap();
    let name = address.rsplit('/').next().unwrap();
    for ports in [[former.port(), promoted.port()], [promoted.port(), former.port()]] {
        let both = format!("{user}@127.0.0.1:{},127.0.0.1:{}/{name}", ports[0], ports[1]);
        let snapshot = PostgresStore::open_snapshot(&options(&both)).unwrap();
        let message = snapshot.read_from().unwrap();
        let place = format!("127.0.0.1:{} on timeline 2", promoted.port());
        assert!(message.starts_with(&place) && message.contains("it is a former primary"), "{message}");
        let store = PostgresStore::open(&options(&both)).unwrap();
        assert_eq!(store.head(PARTITION).unwrap().next, Sequence(2));
        let trouble = store.trouble().unwrap();
        assert!(store.has_former() && trouble.contains(&former.port().to_string()), "{trouble}");
    }
}

/// Session mode is as good as the server itself.
#[test]
fn a_pooler_that_shares_sessions_is_refused_in_words() {
    let Some(server) = shared() else { return };
    let name = server.database().rsplit('/').next().unwrap().to_owned();
    let [Some(session), Some(transaction)] = ["session", "transaction"].map(|mode| server.pooler(mode)) else { return };
    let through = |pooler: &Pooler| PostgresStore::open(&options(&pooler.address_of(&name)));
    let store = Arc::new(through(&session).unwrap());
    let part = take(&store);
    part.append(&block(&part, 1)).unwrap();
    let refused = through(&transaction).unwrap_err();
    assert!(matches!(refused, StoreError::UnsafeDatabase { what, .. } if what.contains("session mode")), "{refused}");
}
