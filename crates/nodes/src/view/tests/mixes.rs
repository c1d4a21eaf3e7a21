//! Random mixes of honest and false nodes. While the honest ones are a majority, the head is theirs.

use alloy_primitives::map::B256Set;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use tokio::time::{Duration, advance};

use super::land::Land;
use super::*;

const SEED: u64 = 0x4c35;
const MIXES: usize = 50;
const STEPS: usize = 200;

struct Mix {
    random: StdRng,
    view: Arc<NodesView>,
    land: Land,
    /// The first ones are honest.
    heads: Vec<B256>,
    honest: usize,
    alive: Vec<bool>,
    tip: B256,
    /// Every block that was ever on the honest chain.
    true_blocks: B256Set,
    salt: u64,
    /// The branch on which false nodes meet.
    false_tip: B256,
    served: Option<B256>,
}

#[tokio::test(start_paused = true)]
async fn while_a_majority_is_honest_the_head_is_theirs() {
    for mix in 0..MIXES {
        let mut mix = Mix::new(SEED + mix as u64);
        for _ in 0..STEPS {
            mix.step().await;
            mix.check();
        }
        mix.all_honest_nodes_return();
        mix.all_honest_nodes_catch_up();
        mix.check();
        assert_eq!(mix.served, Some(mix.tip), "in the end the head is the honest tip");
    }
}

impl Mix {
    fn new(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let nodes = random.random_range(1..=7);
        let honest = random.random_range(nodes / 2 + 1..=nodes);
        let (view, mut land) = (NodesView::new(ViewSettings::default()), Land::new());
        view.set_nodes(&NodeId::first(nodes));
        view.set_identity(1, Some(land.genesis));
        let tip = land.grow(land.genesis, random.random_range(0..400), 0);
        let true_blocks = (0..=land.id(tip).number).map(|below| land.ancestor(tip, below)).collect();
        let (heads, alive) = (vec![land.genesis; nodes], vec![true; nodes]);
        let false_tip = land.genesis;
        let mut mix = Self {
            random,
            view,
            land,
            heads,
            honest,
            alive,
            tip,
            true_blocks,
            salt: 1,
            false_tip,
            served: None,
        };
        mix.all_honest_nodes_catch_up();
        mix
    }

    /// Each step takes up to half the time in which an honest node sees a new block at the latest.
    async fn step(&mut self) {
        match self.random.random_range(0..10) {
            0..4 => self.grow(1),
            4 => self.reorganise(),
            _ => {}
        }
        for node in 0..self.honest {
            if self.random.random_bool(0.5) {
                self.catch_up(node);
            }
        }
        for node in self.honest..self.heads.len() {
            self.lie(node);
        }
        self.die_or_return();
        if self.random.random_bool(0.02) {
            self.quiet().await;
        }
        advance(Duration::from_secs(self.random.random_range(0..4))).await;
    }

    fn grow(&mut self, blocks: u64) {
        for _ in 0..blocks {
            self.tip = self.land.grow(self.tip, 1, self.salt);
            self.true_blocks.insert(self.tip);
        }
    }

    fn reorganise(&mut self) {
        let most = self.land.id(self.tip).number.min(8);
        let depth = self.random.random_range(0..=most);
        self.tip = self.land.ancestor(self.tip, depth);
        self.salt += 1;
        self.grow(depth + 1);
    }

    /// A time in which no honest block comes, much longer than any patience.
    async fn quiet(&mut self) {
        self.all_honest_nodes_catch_up();
        for _ in 0..20 {
            advance(Duration::from_secs(30)).await;
            (self.honest..self.heads.len()).for_each(|node| self.lie(node));
            self.check();
        }
    }

    fn all_honest_nodes_catch_up(&mut self) {
        (0..self.honest).for_each(|node| self.show(node, self.tip));
    }

    fn all_honest_nodes_return(&mut self) {
        for node in 0..self.honest {
            self.alive[node] = true;
            self.view.set_counted(id(node), true);
        }
    }

    fn catch_up(&mut self, node: usize) {
        let lag = u64::from(self.random.random_bool(0.3)).min(self.land.id(self.tip).number);
        let to = self.land.ancestor(self.tip, lag);
        // An honest node does not fall back.
        if !self.land.descends(self.heads[node], to) {
            self.show(node, to);
        }
    }

    fn lie(&mut self, node: usize) {
        let number = self.land.id(self.tip).number;
        let below = self.random.random_range(0..=number.min(300));
        let ahead = self.random.random_range(1..300);
        match self.random.random_range(0..8) {
            0 => self.show(node, self.land.genesis),
            1 => self.show(node, self.land.ancestor(self.tip, below)),
            2 => self.false_tip = self.land.grow(self.tip, 1 + ahead % 5, u64::MAX),
            3 => self.false_tip = self.land.grow(self.land.ancestor(self.tip, below), ahead, u64::MAX),
            4 => self.false_tip = self.land.grow(self.false_tip, 1, u64::MAX),
            5 | 6 => self.show(node, self.false_tip),
            _ => {} // stuck
        }
    }

    /// Nodes come and go, false and honest ones.
    fn die_or_return(&mut self) {
        let places: Vec<usize> = (0..self.heads.len()).collect();
        let Some(&node) = places.choose(&mut self.random) else { return };
        let mut alive = self.alive.clone();
        alive[node] = !alive[node];
        self.alive = alive;
        // Who returns is looked at before its word counts.
        if self.alive[node] && node < self.honest {
            self.show(node, self.tip);
        }
        self.view.set_counted(id(node), self.alive[node]);
        self.check_served();
    }

    fn show(&mut self, node: usize, head: B256) {
        self.heads[node] = head;
        assert_eq!(self.land.bring(&self.view, node, head), BranchLink::Linked);
        self.check_served();
    }

    fn check_served(&mut self) {
        let Some(head) = self.view.head().map(|head| head.hash) else { return };
        assert!(self.true_blocks.contains(&head), "a false block is served");
        if let Some(served) = self.served.replace(head) {
            assert!(served == head || !self.land.descends(served, head), "the head went backwards");
        }
    }

    fn check(&mut self) {
        self.check_served();
        let Some(head) = self.served else { return };
        let had = self.had_by_an_honest_majority();
        let near = self.land.ancestor(had, self.land.id(had).number.min(1));
        assert!(self.land.descends(head, near), "the head is more than a block behind");
    }

    /// The highest block that as many living honest nodes have as are a majority of all.
    fn had_by_an_honest_majority(&self) -> B256 {
        let majority = self.alive.len() / 2 + 1;
        let living: Vec<B256> = (0..self.honest).filter(|&n| self.alive[n]).map(|n| self.heads[n]).collect();
        let votes = |block: B256| living.iter().filter(|head| self.land.descends(**head, block)).count();
        let lines = living.iter().flat_map(|&head| {
            (0..=self.land.id(head).number.min(20)).map(move |below| self.land.ancestor(head, below))
        });
        let enough = lines.filter(|&block| votes(block) >= majority);
        enough.max_by_key(|&block| self.land.id(block).number).unwrap_or(self.land.genesis)
    }
}
