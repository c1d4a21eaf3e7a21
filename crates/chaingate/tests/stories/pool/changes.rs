//! A reader of the changes of a chain, in front of nodes and of an archive. Whoever applies them has the chain.

use std::sync::Arc;

use answers::{Answers, ArchiveSource, ChainChanges, ChainEvent};
use methods::BlockRef;
use resources::MemoryBudget;
use sources::AnswerLimits;
use tokio::runtime::{Builder, Runtime};

use super::executed::{NETWORK, Nodes};
use super::front::Front;

/// The chain as its reader knows it.
struct Reader {
    changes: ChainChanges,
    known: Vec<BlockRef>,
    runtime: Runtime,
}

impl Reader {
    fn new(changes: ChainChanges, nodes: &Nodes) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        Self { changes, known: nodes.blocks(), runtime }
    }

    /// Reads until the chain is that of the nodes. Returns the blocks that were removed.
    fn read_until_equal(&mut self, nodes: &Nodes) -> Vec<BlockRef> {
        let (mut all_removed, blocks) = (Vec::new(), nodes.blocks());
        while self.known.last() != blocks.last() {
            let ChainEvent::Changed(change) = self.runtime.block_on(self.changes.next()) else {
                panic!("nothing was missed");
            };
            for block in change.removed {
                assert_eq!(self.known.pop(), Some(block));
                all_removed.push(block);
            }
            self.known.extend(change.added);
        }
        assert_eq!(self.known, blocks);
        all_removed
    }
}

impl Nodes {
    fn blocks(&self) -> Vec<BlockRef> {
        let model = self.newest().model();
        let hash = |number| model.header(number).unwrap().hash();
        (0..=self.head()).map(|number| BlockRef { number, hash: hash(number) }).collect()
    }
}

fn all_changes_are_told(mut nodes: Nodes, mut reader: Reader) {
    nodes.grow(3);
    assert_eq!(reader.read_until_equal(&nodes), []);
    let mut before = nodes.blocks();
    nodes.reorganise(2, 5);
    before.reverse();
    assert_eq!(reader.read_until_equal(&nodes), before[..2]);
    let mut before = nodes.blocks();
    nodes.roll_back(4);
    before.reverse();
    assert_eq!(reader.read_until_equal(&nodes), before[..4]);
    nodes.grow(1);
    assert_eq!(reader.read_until_equal(&nodes), []);
}

#[test]
fn the_changes_of_the_chain_of_nodes_are_told_in_each_mode_of_following() {
    for mode in ["off", "blocks", "full"] {
        let nodes = Nodes::start(10);
        let data_dir = tempfile::tempdir().unwrap();
        if mode == "full" {
            nodes.genesis_in(data_dir.path());
        }
        let rest = format!("{NETWORK}[pool]\nrollback_after_ms = 20\n");
        let front = Front::following(data_dir.path(), &nodes.urls(), &format!("mode = \"{mode}\""), &rest);
        crate::demo::until("it has the head", || {
            front.ask("eth_blockNumber", "[]")["result"] == format!("{:#x}", nodes.head())
        });
        let reader = Reader::new(front.chain_changes(), &nodes);
        all_changes_are_told(nodes, reader);
    }
}

#[test]
fn the_changes_of_an_archive_are_told() {
    let nodes = Nodes::start(10);
    let source = Arc::new(ArchiveSource::new(Arc::clone(nodes.archive()), AnswerLimits::default()));
    let answers = Answers::new(source.into(), AnswerLimits::default(), MemoryBudget::new(64 << 20)).unwrap();
    let reader = Reader::new(answers.changes(), &nodes);
    all_changes_are_told(nodes, reader);
}
