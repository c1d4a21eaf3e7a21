//! Blocks that were proven elsewhere: what was put in comes out, whatever was put, replaced, dropped and reopened before,
//! and whatever the disk does.
//!
//! `CHAINGATE_BLOCKS_FILE_SEED` draws other histories.

use super::{
    memory_disk::{Fault, MemoryDisk},
    setup::{other_chain, small_chain},
};
use alloy_primitives::B256;
use archive::{
    BLOCKS_FILE, BlockParts, BlocksFile, BlocksFileLimits, BlocksFileOpenError, EncodedBlock, StoredChainId,
    StoredHeader,
};
use chain_builder::BuiltBlock;
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
    sync::Arc,
    time::{Duration, Instant},
};
use testkit::truth::Truth;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

const ALL: BlocksFileLimits = BlocksFileLimits { blocks_max: None, headers_max: None };

fn seed() -> u64 {
    std::env::var("CHAINGATE_BLOCKS_FILE_SEED").map_or(1, |seed| seed.parse().unwrap())
}

fn encoded(built: &BuiltBlock) -> EncodedBlock {
    EncodedBlock::new(&BlockParts {
        hash: built.hash,
        header: &built.block.header,
        transactions: &built.block.body.transactions,
        uncles: &built.block.body.ommers,
        withdrawals: built.block.body.withdrawals.as_ref(),
        receipts: &built.receipts,
    })
}

fn header_of(built: &BuiltBlock) -> StoredHeader {
    let header = &built.block.header;
    StoredHeader {
        number: header.number,
        hash: built.hash,
        parent: header.parent_hash,
        logs_bloom: header.logs_bloom,
    }
}

/// Two chains that share their genesis: a number has one of two blocks.
struct Chains([Truth; 2]);

impl Chains {
    fn new() -> Self {
        Self([small_chain(), other_chain()])
    }

    fn block(&self, chain: usize, number: u64) -> &BuiltBlock {
        self.0[chain].model.block(number).unwrap()
    }

    /// The newest number that both have.
    fn head(&self) -> u64 {
        self.0[0].model.head().min(self.0[1].model.head())
    }
}

/// The expected content of the file: which of the two blocks of a number.
#[derive(Clone, Default, Debug, PartialEq)]
struct Model {
    whole: BTreeMap<u64, usize>,
    headers: BTreeMap<u64, usize>,
}

impl Model {
    fn put(&mut self, number: u64, chain: usize) {
        self.whole.insert(number, chain);
        self.headers.insert(number, chain);
    }

    fn put_header(&mut self, number: u64, chain: usize) {
        if !self.whole.contains_key(&number) {
            self.headers.insert(number, chain);
        }
    }

    fn remove_above(&mut self, number: u64) {
        self.whole.split_off(&(number + 1));
        self.headers.split_off(&(number + 1));
    }

    fn prune(&mut self, limits: BlocksFileLimits) {
        while limits.blocks_max.is_some_and(|most| self.whole.len() as u64 > most) {
            self.whole.pop_first();
        }
        while limits.headers_max.is_some_and(|most| self.headers.len() as u64 > most)
            && self.headers.keys().next().is_some_and(|lowest| !self.whole.contains_key(lowest))
        {
            self.headers.pop_first();
        }
    }

    /// Everything that can be read is what was put.
    fn check(&self, blocks_file: &BlocksFile, chains: &Chains) -> Result<(), String> {
        let snapshot = blocks_file.snapshot();
        let numbers: BTreeSet<u64> = snapshot.ranges().flatten().collect();
        if numbers != self.whole.keys().copied().collect() {
            return Err(format!("{numbers:?} are stored, not {:?}", self.whole.keys()));
        }
        assert_eq!(snapshot.block_count(), self.whole.len() as u64);
        assert_eq!(snapshot.header_count(), self.headers.len() as u64);
        for number in 1..=chains.head() {
            let header = snapshot.header(number).map_err(|cause| cause.to_string())?;
            let expected = self.headers.get(&number).map(|chain| header_of(chains.block(*chain, number)));
            assert_eq!(header, expected, "header {number}");
            let body = snapshot.body(number).unwrap().map(|body| body.decode().unwrap());
            let receipts = snapshot.receipts(number).unwrap().map(|receipts| receipts.decode().unwrap());
            let whole = self.whole.get(&number).map(|chain| chains.block(*chain, number));
            assert_eq!(body.as_ref(), whole.map(|built| &built.block), "body {number}");
            assert_eq!(receipts.as_ref(), whole.map(|built| &built.receipts), "receipts {number}");
            for chain in 0..2 {
                let built = chains.block(chain, number);
                let is_here = whole.is_some_and(|whole| whole.hash == built.hash);
                assert_eq!(snapshot.number_of(&built.hash).unwrap(), is_here.then_some(number));
                for (index, transaction) in built.block.body.transactions.iter().enumerate() {
                    let place = snapshot.place(transaction.tx_hash()).unwrap();
                    if is_here {
                        assert_eq!(place, Some((number, index as u32)));
                    } else if let Some((other, _)) = place {
                        assert!(self.whole.contains_key(&other), "a transaction of a block that is gone");
                    }
                }
            }
        }
        Ok(())
    }
}

/// Puts a run of blocks or headers of one of the chains, or removes the highest ones.
fn act(blocks_file: &BlocksFile, model: &mut Model, chains: &Chains, rng: &mut StdRng) {
    let chain = rng.random_range(0..2);
    let lowest = rng.random_range(1..=chains.head());
    if rng.random_ratio(1, 8) {
        blocks_file.remove_above(lowest).unwrap();
        return model.remove_above(lowest);
    }
    let run = lowest..=chains.head().min(lowest + rng.random_range(0..6));
    if rng.random_ratio(1, 3) {
        let headers: Vec<_> = run.clone().map(|number| header_of(chains.block(chain, number))).collect();
        blocks_file.put_headers(&headers).unwrap();
        run.for_each(|number| model.put_header(number, chain));
    } else {
        let mut blocks: Vec<_> = run.clone().map(|number| encoded(chains.block(chain, number))).collect();
        if rng.random() {
            blocks.reverse();
        }
        blocks_file.put_blocks(&blocks).unwrap();
        run.for_each(|number| model.put(number, chain));
    }
    model.prune(blocks_file.limits());
}

#[test]
fn what_was_put_comes_out_whatever_was_replaced_dropped_and_reopened() {
    let chains = Chains::new();
    let mut rng = StdRng::seed_from_u64(seed());
    for _ in 0..8 {
        let directory = tempfile::tempdir().unwrap();
        let mut model = Model::default();
        let mut blocks_file = None;
        for _ in 0..30 {
            if blocks_file.is_none() || rng.random_ratio(1, 6) {
                let limit = |rng: &mut StdRng| rng.random::<bool>().then(|| rng.random_range(1..40));
                let limits = BlocksFileLimits { blocks_max: limit(&mut rng), headers_max: limit(&mut rng) };
                drop(blocks_file.take());
                blocks_file = Some(BlocksFile::open_or_create(directory.path(), limits).unwrap());
            }
            let blocks_file = blocks_file.as_ref().unwrap();
            act(blocks_file, &mut model, &chains, &mut rng);
            model.check(blocks_file, &chains).unwrap_or_else(|found| panic!("{found}, seed {}", seed()));
        }
    }
}

/// Headers lead down as long as each is the parent of the one above it.
#[test]
fn headers_lead_down_to_the_first_that_is_not_there_or_of_another_chain() {
    let chains = Chains::new();
    let directory = tempfile::tempdir().unwrap();
    let blocks_file = BlocksFile::open_or_create(directory.path(), ALL).unwrap();
    let headers = |chain: usize, numbers: std::ops::RangeInclusive<u64>| -> Vec<StoredHeader> {
        numbers.map(|number| header_of(chains.block(chain, number))).collect()
    };
    blocks_file.put_headers(&headers(0, 10..=20)).unwrap();
    blocks_file.put_headers(&headers(1, 5..=9)).unwrap();
    blocks_file.put_blocks(&[encoded(chains.block(0, 21))]).unwrap();
    let down = |top: (u64, B256), lowest: u64| {
        let mut seen = Vec::new();
        let end = blocks_file.snapshot().headers_down(top, lowest, |header| {
            seen.push(header.number);
            ControlFlow::Continue(())
        });
        (seen.len(), end.unwrap())
    };
    let top = (21, chains.block(0, 21).hash);
    assert_eq!(down(top, 15), (7, None));
    assert_eq!(down(top, 0), (12, Some((9, chains.block(0, 10).block.header.parent_hash))));
    assert_eq!(down((22, chains.block(0, 22).hash), 15), (0, Some((22, chains.block(0, 22).hash))));
    assert_eq!(down((21, B256::ZERO), 15), (0, Some((21, B256::ZERO))));
}

#[test]
fn the_chain_is_remembered_and_one_process_has_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let chain = StoredChainId { chain_id: 1338, genesis: Some(B256::repeat_byte(7)) };
    let blocks_file = BlocksFile::open_or_create(directory.path(), ALL).unwrap();
    assert_eq!(blocks_file.snapshot().chain(), None);
    blocks_file.set_chain(chain).unwrap();
    let second = BlocksFile::open_or_create(directory.path(), ALL);
    assert!(matches!(second, Err(BlocksFileOpenError::InUse(_))), "{second:?}");
    drop(blocks_file);
    let blocks_file = BlocksFile::open_or_create(directory.path(), ALL).unwrap();
    assert_eq!(blocks_file.snapshot().chain(), Some(chain));
}

#[test]
fn a_file_that_is_something_else_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(BLOCKS_FILE), vec![7; 50_000]).unwrap();
    let refused = BlocksFile::open_or_create(directory.path(), ALL);
    assert!(matches!(refused, Err(BlocksFileOpenError::Foreign(_))), "{refused:?}");
    let file = directory.path().join("a-file");
    std::fs::write(&file, "").unwrap();
    let refused = BlocksFile::open_or_create(&file.join("below"), ALL);
    assert!(matches!(refused, Err(BlocksFileOpenError::Write { .. })), "{refused:?}");
}

/// A file with some blocks, and what should be in it before and after one more put.
struct Scene {
    chains: Chains,
    file: Vec<u8>,
    before: Model,
    after: Model,
}

impl Scene {
    fn new() -> Self {
        let chains = Chains::new();
        let directory = tempfile::tempdir().unwrap();
        let blocks_file = BlocksFile::open_or_create(directory.path(), ALL).unwrap();
        let mut before = Model::default();
        let blocks: Vec<_> = (3..20).map(|number| encoded(chains.block(0, number))).collect();
        blocks_file.put_blocks(&blocks).unwrap();
        (3..20).for_each(|number| before.put(number, 0));
        drop(blocks_file);
        let file = std::fs::read(directory.path().join(BLOCKS_FILE)).unwrap();
        let mut after = before.clone();
        (20..25).for_each(|number| after.put(number, 0));
        Self { chains, file, before, after }
    }

    fn put(&self, disk: &Arc<MemoryDisk>) -> Result<(), String> {
        let blocks_file = BlocksFile::open_on(disk.clone(), ALL).map_err(|cause| cause.to_string())?;
        self.put_into(&blocks_file)
    }

    fn put_into(&self, blocks_file: &BlocksFile) -> Result<(), String> {
        let blocks: Vec<_> = (20..25).map(|number| encoded(self.chains.block(0, number))).collect();
        blocks_file.put_blocks(&blocks).map_err(|cause| cause.to_string())
    }

    /// All or nothing is there, and it goes on.
    fn go_on(&self, disk: &Arc<MemoryDisk>, what: &str) {
        let blocks_file =
            BlocksFile::open_on(disk.clone(), ALL).unwrap_or_else(|cause| panic!("{what}: {cause}"));
        let is_before = self.before.check(&blocks_file, &self.chains).is_ok();
        assert!(is_before || self.after.check(&blocks_file, &self.chains).is_ok(), "{what}");
        self.put_into(&blocks_file).unwrap_or_else(|cause| panic!("{what}: {cause}"));
        self.after.check(&blocks_file, &self.chains).unwrap_or_else(|cause| panic!("{what}: {cause}"));
    }

    fn accesses(&self) -> u64 {
        let disk = MemoryDisk::new(self.file.clone(), None);
        self.put(&disk).unwrap();
        disk.accesses()
    }
}

#[test]
fn every_access_of_a_put_may_fail() {
    let scene = Scene::new();
    for at in 1..=scene.accesses() {
        let code = if at % 2 == 0 { EIO } else { ENOSPC };
        let disk = MemoryDisk::new(scene.file.clone(), Some(Fault { at, once: at % 3 == 0, code }));
        let _failed = scene.put(&disk);
        disk.repair();
        scene.go_on(&disk, &format!("error {code} at access {at}"));
    }
}

#[test]
fn the_power_may_fail_at_every_access_of_a_put() {
    let scene = Scene::new();
    let mut rng = StdRng::seed_from_u64(seed());
    for at in 1..=scene.accesses() {
        let disk = MemoryDisk::new(scene.file.clone(), Some(Fault { at, once: false, code: EIO }));
        let _failed = scene.put(&disk);
        let disk = MemoryDisk::new(disk.after_a_power_cut(&mut rng), None);
        scene.go_on(&disk, &format!("the power failed at access {at}, seed {}", seed()));
    }
}

/// While the disk is full nothing more is stored, and what is there can be read. When there is room, it goes on.
#[test]
fn a_full_disk_that_gets_room_again_goes_on_without_a_restart() {
    let scene = Scene::new();
    let disk = MemoryDisk::new(scene.file.clone(), None);
    let blocks_file = BlocksFile::open_on(disk.clone(), ALL).unwrap();
    disk.fill();
    assert!(scene.put_into(&blocks_file).is_err());
    assert!(scene.put_into(&blocks_file).is_err());
    scene.before.check(&blocks_file, &scene.chains).unwrap();
    disk.repair();
    let begun = Instant::now();
    while let Err(cause) = scene.put_into(&blocks_file) {
        assert!(begun.elapsed() < Duration::from_secs(30), "{cause}");
        std::thread::sleep(Duration::from_millis(50));
    }
    scene.after.check(&blocks_file, &scene.chains).unwrap();
}
