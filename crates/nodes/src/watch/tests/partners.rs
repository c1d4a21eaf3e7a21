//! Partners, which are asked seldom and have no vote.

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

impl Story {
    /// With a partner that has the chain of the nodes, or any other.
    fn with_partner(mut self, calls_per_day: u64) -> (Self, Arc<ModelNode>) {
        let partner = ModelNode::partner(self.nodes.len(), &self.world, self.tip, calls_per_day);
        self.nodes.push(Arc::clone(&partner));
        (self, partner)
    }
}

fn probes(partner: &ModelNode) -> usize {
    partner.noted.lock().calls.get("eth_chainId").copied().unwrap_or(0)
}

#[tokio::test(start_paused = true)]
async fn a_partner_has_no_vote_and_is_asked_for_its_chain_only() {
    let (story, partner) = Story::of(1, 300).with_partner(100_000);
    partner.set_head(story.world.grow(story.tip, 5, 1));
    story.start();
    story.view.ready().await;
    sleep(5 * MINUTE).await;
    assert_eq!((story.head(), story.view.quorum()), (Some(story.tip), 1));
    assert!(partner.noted.lock().is_admitted);
    let calls = partner.noted.lock().calls.clone();
    assert_eq!(calls.into_iter().collect::<Vec<_>>(), [("eth_chainId", 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_partner_of_another_chain_is_not_used() {
    for is_known_at_once in [true, false] {
        let (mut story, partner) = Story::of(1, 300).with_partner(100_000);
        partner.script.lock().chain_id = 5;
        if is_known_at_once {
            story.settings.chain_id = Some(1);
        }
        story.start();
        story.view.ready().await;
        sleep(SECOND).await;
        let exclusion = partner.noted.lock().exclusion.clone();
        assert_eq!(exclusion, Some(ExclusionReason::OtherChain { theirs: 5, ours: 1 }));
        assert!(!partner.noted.lock().is_admitted);
    }
}

#[tokio::test(start_paused = true)]
async fn a_partner_without_the_checkpoint_is_not_used() {
    let (mut story, partner) = Story::of(1, 300).with_partner(100_000);
    let fork = story.world.grow(story.genesis, 300, 9);
    partner.set_head(fork);
    let ours = story.world.id(story.world.ancestor(story.tip, 290));
    story.settings.checkpoint = Some(ours);
    story.start();
    story.view.ready().await;
    sleep(SECOND).await;
    let theirs = story.world.ancestor(fork, 290);
    let exclusion = partner.noted.lock().exclusion.clone();
    assert_eq!(exclusion, Some(ExclusionReason::OtherCheckpoint { theirs, ours }));
}

/// Probes use at most a hundredth of the calls of a day, or a tenth while it is not known which chain the partner is of.
#[tokio::test(start_paused = true)]
async fn probes_leave_the_quota_to_callers() {
    for (calls_per_day, mood, hours, expected) in [
        (1_000_000, Behaviour::Well, 10, 61),
        (100, Behaviour::Well, 48, 3),
        (100, Behaviour::Dead, 24, 11),
        (0, Behaviour::Well, 24, 0),
    ] {
        let (story, partner) = Story::of(0, 1).with_partner(calls_per_day);
        partner.set_mood(mood);
        story.start();
        sleep(MINUTE * (60 * hours + 1)).await;
        assert_eq!(probes(&partner), expected, "{calls_per_day} calls a day, {mood:?}");
        assert_eq!(partner.noted.lock().is_lost, mood == Behaviour::Dead);
    }
}
