#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    sync::Arc,
};

use alloy_primitives::{B256, keccak256};
use alloy_trie::{EMPTY_ROOT_HASH, HashBuilder, Nibbles, proof::ProofRetainer};
use proptest::{collection::vec, prelude::*, sample::select};
use redb::{ReadableDatabase, ReadableTable, ReadableTableMetadata};

use super::{
    NodeSource, Trie, TrieError,
    edit::read,
    node::{LoadedNodeKind, TrieLink},
    node_key, storage_trie_range,
};
use crate::tables::TRIE_NODES;

type Rows = BTreeMap<Nibbles, Vec<u8>>;
type Model = BTreeMap<B256, Vec<u8>>;

/// A name, the inserts as (number of the key, length of the value), and how many rows they make.
type Case = (&'static str, &'static [(u8, usize)], usize);

impl NodeSource for Rows {
    type Error = Infallible;

    fn node<T>(&self, path: &Nibbles, read: impl FnOnce(&[u8]) -> T) -> Result<Option<T>, Infallible> {
        Ok(self.get(path).map(|row| read(row)))
    }
}

impl Trie {
    fn get<S: NodeSource>(&self, key: B256, source: &S) -> Result<Option<Vec<u8>>, TrieError<S::Error>> {
        let key = Nibbles::unpack(key);
        let (mut link, mut depth) = (self.root.clone(), 0);
        loop {
            let node = match link {
                None => return Ok(None),
                Some(TrieLink::Loaded(node)) => node,
                Some(TrieLink::Stored(hash)) => Arc::new(read(source, &hash, key.slice(..depth))?),
            };
            match &node.kind {
                LoadedNodeKind::Leaf { rest, value } => {
                    return Ok((key.slice(depth..) == *rest).then(|| value.to_vec()));
                }
                LoadedNodeKind::Extension { rest, .. } if !key.slice(depth..).starts_with(rest) => {
                    return Ok(None);
                }
                LoadedNodeKind::Extension { rest, child } => {
                    depth += rest.len();
                    link = Some(child.clone());
                }
                LoadedNodeKind::Branch(children) => {
                    link = children[usize::from(key.get_unchecked(depth))].clone();
                    depth += 1;
                }
            }
        }
    }

    fn save(&mut self, rows: &mut Rows) {
        let saved: Result<(), Infallible> = self.flush(&mut |path, rlp| {
            match rlp {
                Some(rlp) => drop(rows.insert(*path, rlp.to_vec())),
                None => assert!(rows.remove(path).is_some(), "a row was deleted that is not there: {path:?}"),
            }
            Ok(())
        });
        let Ok(()) = saved;
    }
}

/// The root and the rows that the content must have, found without any of the code under test.
fn expected(model: &Model) -> (B256, Rows) {
    let keys = model.keys().map(Nibbles::unpack).collect();
    let mut builder = HashBuilder::default().with_proof_retainer(ProofRetainer::new(keys));
    for (key, value) in model {
        builder.add_leaf(Nibbles::unpack(key), value);
    }
    let root = builder.root();
    let nodes = builder.take_proof_nodes().into_inner().into_iter();
    let nodes = nodes.map(|(path, rlp)| (path, rlp.to_vec()));
    let rows = nodes.filter(|(path, rlp)| !model.is_empty() && (path.is_empty() || rlp.len() >= 32));
    (root, rows.collect())
}

/// A stored trie with long shared prefixes, inlined nodes, and rows of all kinds.
fn sample() -> (Model, Trie, Rows) {
    let model: Model = (0..60).map(|n| (key(n), vec![n + 1; if n % 3 == 0 { 1 } else { 40 }])).collect();
    let (mut trie, mut rows) = (Trie::empty(), Rows::new());
    for (key, value) in &model {
        trie.insert(*key, value, &rows).unwrap();
    }
    trie.save(&mut rows);
    (model, trie, rows)
}

/// 256 keys: some part at the first nibble, some at the last, and some in between.
fn key(n: u8) -> B256 {
    let mut key = match n % 4 {
        0 => return keccak256([n]),
        1 => B256::ZERO,
        2 => B256::repeat_byte(0x11),
        _ => B256::with_last_byte(7),
    };
    key.0[if n % 4 == 3 { 15 } else { 31 }] = n;
    key.0[29] = n / 128;
    key
}

#[test]
fn known_contents_have_their_known_roots_and_rows() {
    let cases: &[Case] = &[
        ("nothing", &[], 0),
        ("one leaf", &[(0, 40)], 1),
        ("two leaves that part at once", &[(0, 40), (4, 40)], 3),
        (
            "two leaves that part at the last nibble: an extension and a branch of inlined leaves",
            &[(1, 1), (5, 1)],
            1,
        ),
        ("the same with long values", &[(1, 40), (5, 40)], 4),
        ("the same key twice", &[(1, 40), (1, 1)], 1),
        ("an empty value is no value", &[(1, 40), (1, 0)], 0),
    ];
    for (name, inserts, row_count) in cases {
        let (mut trie, mut model, mut rows) = (Trie::empty(), Model::new(), Rows::new());
        for (n, len) in *inserts {
            trie.insert(key(*n), &vec![9; *len], &rows).unwrap();
            model.insert(key(*n), vec![9; *len]);
        }
        model.retain(|_, value| !value.is_empty());
        trie.save(&mut rows);
        assert_eq!((trie.root(), &rows), (expected(&model).0, &expected(&model).1), "{name}");
        assert_eq!(rows.len(), *row_count, "{name}");
    }
}

#[test]
fn a_trie_that_was_emptied_leaves_no_row() {
    let (model, trie, mut rows) = sample();
    let mut trie = Trie::with_root(trie.root());
    for key in model.keys() {
        trie.remove(*key, &rows).unwrap();
    }
    trie.save(&mut rows);
    assert_eq!((trie.root(), rows.len()), (EMPTY_ROOT_HASH, 0));
}

#[test]
fn a_row_with_any_flipped_bit_is_an_error() {
    let (model, trie, rows) = sample();
    for (path, row) in &rows {
        for bit in 0..row.len() * 8 {
            let mut damaged = rows.clone();
            damaged.get_mut(path).unwrap()[bit / 8] ^= 1 << (bit % 8);
            let key = *model.keys().find(|key| Nibbles::unpack(key).starts_with(path)).unwrap();
            let mut opened = Trie::with_root(trie.root());
            let error = opened.insert(key, &[1, 2, 3], &damaged).unwrap_err();
            assert!(matches!(error, TrieError::Corrupt { path: at, .. } if at == *path), "{error}");
            assert_eq!(opened.root(), trie.root());
        }
    }
}

#[test]
fn a_missing_row_is_an_error() {
    let (model, trie, rows) = sample();
    for path in rows.keys() {
        let mut damaged = rows.clone();
        damaged.remove(path);
        let key = *model.keys().find(|key| Nibbles::unpack(key).starts_with(path)).unwrap();
        let error = Trie::with_root(trie.root()).remove(key, &damaged).unwrap_err();
        assert_eq!(error, TrieError::Missing { path: *path });
    }
}

/// A removal may need a second node: the sibling that takes the place of the branch.
#[test]
fn a_removal_that_cannot_read_the_sibling_changes_nothing() {
    let (mut trie, mut rows) = (Trie::empty(), Rows::new());
    for n in [0, 4] {
        trie.insert(key(n), &[9; 40], &rows).unwrap();
    }
    trie.save(&mut rows);
    let mut damaged = rows.clone();
    damaged.remove(&Nibbles::unpack(key(4)).slice(..1));
    let root = trie.root();
    trie.forget(0);
    trie.remove(key(0), &damaged).unwrap_err();
    assert_eq!(trie.root(), root);
    trie.remove(key(0), &rows).unwrap();
    trie.save(&mut rows);
    assert_eq!((trie.root(), rows), expected(&Model::from([(key(4), vec![9; 40])])));
}

/// Counts the reads of the rows below it.
struct Counted<'a>(&'a Rows, RefCell<BTreeSet<Nibbles>>);

impl NodeSource for Counted<'_> {
    type Error = Infallible;

    fn node<T>(&self, path: &Nibbles, read: impl FnOnce(&[u8]) -> T) -> Result<Option<T>, Infallible> {
        assert!(self.1.borrow_mut().insert(*path), "{path:?} was read twice");
        self.0.node(path, read)
    }
}

#[test]
fn a_change_costs_the_depth_of_the_trie_and_not_its_size() {
    let (mut trie, mut rows) = (Trie::empty(), Rows::new());
    for n in 0_u32..10_000 {
        trie.insert(keccak256(n.to_be_bytes()), &[9; 40], &rows).unwrap();
    }
    trie.save(&mut rows);
    trie.forget(0);
    assert_eq!(trie.loaded_nodes(), 0);

    let key = keccak256(77_u32.to_be_bytes());
    let depth = rows.keys().filter(|path| Nibbles::unpack(key).starts_with(path)).count();
    let source = Counted(&rows, RefCell::default());
    trie.insert(key, &[8; 40], &source).unwrap();
    trie.insert(key, &[7; 40], &source).unwrap();
    let mut written = 0;
    trie.flush(&mut |_, rlp| rlp.map(|_| written += 1).ok_or("no row goes away")).unwrap();
    assert_eq!((source.1.borrow().len(), written, trie.loaded_nodes()), (depth, depth, depth));
    trie.forget(2);
    assert_eq!(trie.loaded_nodes(), 2);
}

/// One trie of a table that holds many.
struct Table<'a, T>(&'a T, Option<B256>);

impl<T: ReadableTable<&'static [u8], &'static [u8]>> NodeSource for Table<'_, T> {
    type Error = redb::StorageError;

    fn node<R>(&self, path: &Nibbles, read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Self::Error> {
        Ok(self.0.get(&*node_key(self.1.as_ref(), path))?.map(|row| read(row.value())))
    }
}

#[test]
fn many_tries_share_a_table_and_one_of_them_goes_away_by_its_range() {
    let database = redb::Builder::new().create_with_backend(redb::backends::InMemoryBackend::new()).unwrap();
    let (model, mut trie, rows) = sample();
    let owners = [None, Some(B256::ZERO), Some(B256::repeat_byte(0xff))];
    let writing = database.begin_write().unwrap();
    {
        let mut table = writing.open_table(TRIE_NODES).unwrap();
        for owner in &owners {
            for (path, row) in &rows {
                table.insert(&*node_key(owner.as_ref(), path), row.as_slice()).unwrap();
            }
        }
        let (first, end) = storage_trie_range(&B256::ZERO);
        table.retain_in(&*first..&*end, |_, _| false).unwrap();
    }
    writing.commit().unwrap();

    let table = database.begin_read().unwrap().open_table(TRIE_NODES).unwrap();
    assert_eq!(table.len().unwrap(), 2 * rows.len() as u64);
    trie.forget(0);
    for key in model.keys() {
        for owner in [owners[0], owners[2]] {
            assert_eq!(trie.get(*key, &Table(&table, owner)).unwrap().as_ref(), model.get(key));
        }
        trie.get(*key, &Table(&table, owners[1])).unwrap_err();
    }
}

#[derive(Debug, Clone)]
enum Step {
    Insert(u8, Vec<u8>),
    Remove(u8),
    Root,
    Flush,
    Forget(usize),
    /// Changes that are made on a clone, perhaps flushed to a transaction that is aborted, and dropped.
    Abandon(Vec<Step>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let value = prop_oneof![vec(1..=255_u8, 1..3), vec(any::<u8>(), 30..34), vec(any::<u8>(), 70..120)];
    let key = prop_oneof![select(vec![1, 5, 9, 2, 6, 3, 7, 0, 4]), any::<u8>()];
    let step = prop_oneof![
        12 => (key.clone(), value).prop_map(|(key, value)| Step::Insert(key, value)),
        10 => key.prop_map(Step::Remove),
        2 => Just(Step::Root),
        2 => Just(Step::Flush),
        2 => (0..4_usize).prop_map(Step::Forget),
    ];
    let abandoned = vec(step.clone(), 1..12).prop_map(Step::Abandon);
    vec(prop_oneof![12 => step, 1 => abandoned], 1..150)
}

fn run(steps: &[Step], trie: &mut Trie, model: &mut Model, rows: &mut Rows) {
    for step in steps {
        match step {
            Step::Insert(n, value) => {
                trie.insert(key(*n), value, rows).unwrap();
                model.insert(key(*n), value.clone());
            }
            Step::Remove(n) => {
                trie.remove(key(*n), rows).unwrap();
                model.remove(&key(*n));
            }
            Step::Root => assert_eq!(trie.root(), expected(model).0),
            Step::Flush => {
                trie.save(rows);
                assert_eq!(*rows, expected(model).1);
            }
            Step::Forget(levels) => trie.forget(*levels),
            Step::Abandon(steps) => {
                run(steps, &mut trie.clone(), &mut model.clone(), &mut rows.clone());
            }
        }
    }
}

proptest! {
    #[test]
    fn any_history_ends_with_the_root_and_the_rows_of_its_content(steps in steps()) {
        let (mut trie, mut model, mut rows) = (Trie::empty(), Model::new(), Rows::new());
        run(&steps, &mut trie, &mut model, &mut rows);
        for n in 0..=255 {
            prop_assert_eq!(trie.get(key(n), &rows).unwrap(), model.get(&key(n)).cloned());
        }
        trie.save(&mut rows);
        prop_assert_eq!((trie.root(), &rows), (expected(&model).0, &expected(&model).1));

        let mut reopened = Trie::with_root(trie.root());
        run(&steps, &mut reopened, &mut model, &mut rows);
    }
}
