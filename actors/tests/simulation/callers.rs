//! Callers of the simulation and the admission in front of them: they ask, wait, give up, lose
//! answers, and ask again under the same key.

use std::collections::BTreeMap;
use std::sync::Arc;

use actors::journal::{ClosedBy, Permit, Sender};
use actors::resident::{KeyLookup, Outcome};
use ledger::fees::{Options, Settings};
use ledger::merchant::SplitRequest;
use ledger::{
    CardBrand, CardFace, CardRefusal, Centavos, Event, Fingerprint, GroupNumber, Idempotency, LedgerId,
    MerchantCommand, ObjectId, PaymentMethod, Record, Sealed,
};

use crate::actor::{Answer, Ask, Reply, Request};
use crate::audit::{Audit, Floor, ensure};
use crate::chance::Chance;
use crate::model::{Action, Charge, Group};
use crate::world::{Defect, World};

/// Request of a caller, and its key.
#[derive(Clone, Debug)]
struct Intent {
    action: Action,
    key: Option<Idempotency>,
}

struct Caller {
    group: GroupNumber,
    /// The request that it waits for.
    waiting: Option<u64>,
    /// Its next request: a repetition, or a read of its last write.
    next: Option<Intent>,
    /// What it was answered under a key; it may ask again, soon or a month later.
    answered: Vec<Intent>,
}

/// A request that is under way.
struct PendingRequest {
    caller: usize,
    intent: Intent,
    /// The id that this attempt gives to a new charge.
    charge: ObjectId,
    /// The least that the answer to a read must show.
    floor: Floor,
    /// Whether the merchant was known to exist.
    was_open: bool,
}

pub(crate) struct Callers {
    groups: BTreeMap<GroupNumber, Group>,
    recipients_max: u8,
    /// True when now and then a request is so large that few fit a block.
    sends_large: bool,
    /// Percentage of calls by a caller that got no answer, or that reads its last write.
    hurry_percent: usize,
    callers: Vec<Caller>,
    sent: BTreeMap<u64, PendingRequest>,
    number_last: u64,
    key_last: u64,
    is_stopping: bool,
}

impl Callers {
    pub(crate) fn new(chance: &mut Chance) -> Self {
        let group_count = chance.between(2, 4);
        let caller_count = chance.between(10, 40);
        let group = |at: i64| GroupNumber((at % group_count) as u32 + 1);
        let caller = |at| Caller { group: group(at), waiting: None, next: None, answered: Vec::new() };
        Self {
            groups: (0..group_count).map(|at| (group(at), Group::default())).collect(),
            recipients_max: chance.between(1, 5) as u8,
            sends_large: chance.percent(4),
            hurry_percent: chance.pick(&[10, 30, 90]).unwrap_or(30),
            callers: (0..caller_count).map(caller).collect(),
            sent: BTreeMap::new(),
            number_last: 0,
            key_last: 0,
            is_stopping: false,
        }
    }

    pub(crate) fn can_call(&self) -> bool {
        self.callers.iter().any(|caller| self.may_call(caller))
    }

    pub(crate) fn are_waiting(&self) -> bool {
        self.callers.iter().any(|caller| caller.waiting.is_some())
    }

    pub(crate) fn are_answered(&self) -> bool {
        self.sent.is_empty() && self.callers.iter().all(|caller| caller.waiting.is_none() && caller.next.is_none())
    }

    /// True when every request was answered, or never will be.
    pub(crate) fn nobody_waits(&self) -> bool {
        self.sent.is_empty() && !self.are_waiting()
    }

    pub(crate) fn stop_asking(&mut self) {
        self.is_stopping = true;
    }

    /// Everybody's balance is asked for, by whoever.
    pub(crate) fn ask_balances(&mut self, ledgers: &[LedgerId]) {
        for ledger in ledgers {
            let group = ledger.group().unwrap_or_default();
            let next = Some(Intent { action: Action::Read(*ledger), key: None });
            self.callers.push(Caller { group, waiting: None, next, answered: Vec::new() });
        }
    }

    /// What the callers know agrees with the journal and with the ledgers.
    pub(crate) fn settle(&self, audit: &Audit) -> Result<(), String> {
        self.groups.iter().try_for_each(|(number, group)| group.settle(*number, audit))
    }

    /// The least that the answer to a request must show.
    pub(crate) fn floor(&self, number: u64) -> Floor {
        self.sent.get(&number).map(|sent| sent.floor).unwrap_or_default()
    }

    /// A caller asks, through the door: the key is looked up, room is taken, the request goes on
    /// its way.
    pub(crate) fn call(&mut self, world: &mut World) -> Result<(), String> {
        let free: Vec<_> = (0..self.callers.len()).filter(|at| self.may_call(&self.callers[*at])).collect();
        let again: Vec<_> = free.iter().copied().filter(|at| self.callers[*at].next.is_some()).collect();
        let hurries = !again.is_empty() && world.chance.percent(self.hurry_percent);
        let Some(at) = world.chance.pick(if hurries { &again } else { &free }) else { return Ok(()) };
        let group = self.callers[at].group;
        let intent = self.callers[at].next.take();
        let Some(intent) = intent.map_or_else(|| self.plan(at, world), |intent| Ok(Some(intent)))? else {
            return Ok(());
        };
        world.note(|_| format!("  caller {at} of {group:?}: {intent:?}"));
        let charge = world.ids.object(group, world.now, world.chance.next());
        let key = match self.look_up(at, &intent, charge, world)? {
            Some(key) => key,
            None => return Ok(()),
        };
        let Some(permit) = enter(&intent.action, world)? else {
            self.callers[at].next = Some(intent);
            return Ok(());
        };
        let known = self.groups.entry(group).or_default();
        known.attempt(&intent.action, charge);
        let was_open = known.is_open;
        self.number_last += 1;
        let number = self.number_last;
        let (ledger, ask) = match &intent.action {
            Action::Read(ledger) => (*ledger, Ask::Read),
            action => (LedgerId::Merchant(group), Ask::Command(command(action, charge, world))),
        };
        let mut floor = world.audit.floor(ledger, world.now);
        if !permit.may_write() {
            floor = floor.without_what_is_due();
        }
        self.sent.insert(number, PendingRequest { caller: at, intent, charge, floor, was_open });
        self.callers[at].waiting = Some(number);
        world.transit.push(Request { number: Some(number), ledger, ask, key, permit, was_full: world.is_full });
        Ok(())
    }

    /// A caller waits no longer. Its request goes on all the same.
    pub(crate) fn give_up(&mut self, world: &mut World) {
        let waiting: Vec<_> = self.callers.iter().filter_map(|caller| caller.waiting).collect();
        let Some(number) = world.chance.pick(&waiting) else { return };
        world.coverage.saw("caller gave up");
        if let Some(sent) = self.sent.get(&number) {
            let (at, intent) = (sent.caller, sent.intent.clone());
            self.leave_unknown(at, intent);
        }
    }

    /// The engine says that nobody knows what became of a request.
    pub(crate) fn never_hear(&mut self, number: u64) {
        if let Some(sent) = self.sent.remove(&number)
            && self.callers[sent.caller].waiting == Some(number)
        {
            self.leave_unknown(sent.caller, sent.intent);
        }
    }

    /// Every connection breaks. Gives whether an answer of the acquirer is still to come.
    pub(crate) fn process_died(&mut self) -> bool {
        let numbers: Vec<_> = self.sent.keys().copied().collect();
        numbers.into_iter().for_each(|number| self.never_hear(number));
        self.groups.values().any(|group| group.acquirer.has_unheard())
    }

    /// An answer comes, unless it is lost on its way or nobody waits for it any more.
    pub(crate) fn hear(&mut self, answer: Answer, world: &mut World) -> Result<(), String> {
        let Some(sent) = self.sent.remove(&answer.number) else { return Ok(()) };
        let PendingRequest { caller: at, intent, charge, was_open, .. } = sent;
        if self.callers[at].waiting != Some(answer.number) {
            return Ok(());
        }
        if !self.is_stopping && world.chance.percent(8) {
            world.coverage.saw("answer lost on its way");
            self.leave_unknown(at, intent);
            return Ok(());
        }
        self.callers[at].waiting = None;
        match answer.reply {
            Reply::Standing(_) => Ok(()),
            Reply::Outcome(Outcome::Recorded(record)) => self.learn(at, intent, charge, &record, world),
            Reply::Outcome(Outcome::Unchanged) => {
                world.coverage.saw("nothing to change");
                self.learn_unchanged(at, &intent.action, world)
            }
            Reply::Outcome(Outcome::Refused(why)) => {
                world.coverage.saw("command refused");
                let group = self.groups.entry(self.callers[at].group).or_default();
                group.refuse(&intent.action, charge, &why, was_open)
            }
            Reply::Outcome(Outcome::KeyTaken) => {
                world.coverage.saw("key taken");
                let seen = answer.key.map_or(u64::MAX, |key| key.looked_up_through);
                let published = world.read_model.ordinal(answer.ledger);
                self.callers[at].next = Some(intent);
                ensure(published > seen, || {
                    format!("a key is taken after {seen}, but a new look-up sees no further than {published}")
                })
            }
        }
    }

    fn may_call(&self, caller: &Caller) -> bool {
        caller.waiting.is_none() && (caller.next.is_some() || !self.is_stopping)
    }

    /// The door looks a key up. `None` when that was the answer already.
    fn look_up(
        &mut self,
        at: usize,
        intent: &Intent,
        charge: ObjectId,
        world: &mut World,
    ) -> Result<Option<Option<KeyLookup>>, String> {
        let Some(idempotency) = intent.key else { return Ok(Some(None)) };
        if let Some(record) = world.read_model.answer_to(idempotency.key, world.now) {
            world.coverage.saw("key answered by replay");
            world.check_delivered(&record)?;
            world.audit.acknowledge(&record)?;
            self.learn(at, intent.clone(), charge, &record, world)?;
            return Ok(None);
        }
        if world.read_model.has_outlived(idempotency.key, world.now) {
            world.coverage.saw("key used again after its life");
        }
        let seen = world.read_model.ordinal(LedgerId::Merchant(self.callers[at].group));
        let looked_up_through = if world.defect == Some(Defect::ClaimsKeysLookedUp) { u64::MAX } else { seen };
        Ok(Some(Some(KeyLookup { idempotency, looked_up_through })))
    }

    /// With a key it is asked again; without one nobody dares.
    fn leave_unknown(&mut self, at: usize, intent: Intent) {
        self.callers[at].waiting = None;
        let may_repeat = intent.key.is_some() || matches!(intent.action, Action::Read(_));
        self.callers[at].next = may_repeat.then_some(intent);
    }

    fn learn(
        &mut self,
        at: usize,
        intent: Intent,
        charge: ObjectId,
        record: &Record,
        world: &mut World,
    ) -> Result<(), String> {
        let number = self.callers[at].group;
        self.groups.entry(number).or_default().learn(&intent.action, charge, record)?;
        record.events.iter().for_each(|event| count(event, world));
        let others = record.other_ledgers();
        if matches!(intent.action, Action::Capture { .. } | Action::Confirm { .. }) && world.chance.percent(75) {
            let ledger = world.chance.pick(&others).unwrap_or(LedgerId::Merchant(number));
            if !self.is_stopping {
                world.coverage.saw("read by its writer right after the answer");
                self.callers[at].next = Some(Intent { action: Action::Read(ledger), key: None });
            }
        }
        if intent.key.is_some() {
            self.callers[at].answered.push(intent);
        }
        Ok(())
    }

    /// Nothing changed: that must be because it was so before.
    fn learn_unchanged(&mut self, at: usize, action: &Action, world: &World) -> Result<(), String> {
        let number = self.callers[at].group;
        match action {
            Action::Register { document, .. } => {
                let id = world.read_model.recipient(number, fingerprint(u64::from(*document), number.0));
                ensure(id.is_some(), || format!("document {document} is registered, but nobody finds it"))
            }
            Action::Submit { .. } | Action::Authorize { .. } => Ok(()),
            action => Err(format!("{action:?} changed nothing")),
        }
    }

    /// What a caller asks for when nothing is left over from before.
    fn plan(&mut self, at: usize, world: &mut World) -> Result<Option<Intent>, String> {
        let chance = &mut world.chance;
        if chance.percent(6)
            && let Some(which) = Some(chance.below(self.callers[at].answered.len()))
            && let Some(intent) = self.callers[at].answered.get(which)
        {
            return Ok(Some(intent.clone()));
        }
        let number = self.callers[at].group;
        let group = self.groups.entry(number).or_default();
        let action = plan_action(number, group, self.recipients_max, self.sends_large, chance);
        let action = match action {
            Some(Action::Capture { charge }) => {
                group.acquirer.happens(charge, (&world.audit, &mut world.coverage), world.defect, chance)?
            }
            action => action,
        };
        let Some(action) = action else { return Ok(None) };
        let has_ended = |charge| group.charges.get(charge).is_some_and(|known| known.closing.is_some());
        if matches!(&action, Action::Capture { charge } | Action::Refuse { charge } if has_ended(charge)) {
            world.coverage.saw("answer that came after the charge had ended");
        }
        let is_read = matches!(action, Action::Read(_));
        let key = (!is_read && chance.percent(70)).then(|| {
            self.key_last += 1;
            Idempotency { key: fingerprint(self.key_last, u32::MAX), body: fingerprint(self.key_last, 0) }
        });
        Ok(Some(Intent { action, key }))
    }
}

/// Takes room at the door. A full disk refuses commands, but never a read that would otherwise be
/// let in.
fn enter(action: &Action, world: &mut World) -> Result<Option<Arc<Permit>>, String> {
    let room = &world.admission;
    let is_read = matches!(action, Action::Read(_));
    let permit = match world.defect {
        Some(Defect::ReadsWantToWrite) => room.try_take(Sender::Door, DOOR_BYTES),
        Some(Defect::DoorForgetsTheDisk) if world.is_full => {
            room.set_closed(ClosedBy::Space, false);
            let permit = room.try_take(Sender::Door, DOOR_BYTES);
            room.set_closed(ClosedBy::Space, true);
            permit
        }
        _ if is_read => room.try_read(Sender::Door, DOOR_BYTES),
        _ => room.try_take(Sender::Door, DOOR_BYTES),
    };
    let is_free = room.free(Sender::Door) > 0 && world.bytes_free_at_the_door() >= DOOR_BYTES as i64;
    ensure(permit.is_some() || !is_read || !is_free, || "a read was refused because the disk is full".into())?;
    world.coverage.saw(match (&permit, world.is_full) {
        (Some(_), true) => "read while the disk was full",
        (None, true) if !is_read => "command refused while the disk was full",
        (None, _) => "no room at the door",
        (Some(_), false) => return Ok(permit),
    });
    Ok(permit)
}

/// Admission that is taken for one request.
const DOOR_BYTES: usize = 1_024;

/// Next request of one of a group's callers, which knows the answers to all of them; `None` if it
/// waits for the others.
fn plan_action(
    number: GroupNumber,
    group: &Group,
    recipients_max: u8,
    large: bool,
    chance: &mut Chance,
) -> Option<Action> {
    if !group.is_open {
        return (group.openings == 0 || chance.percent(5)).then_some(Action::OpenMerchant);
    }
    let large = large && chance.percent(40);
    let documents: Vec<_> = (0..recipients_max).filter(|it| !group.recipients.contains_key(it)).collect();
    if let Some(document) = chance.pick(&documents)
        && chance.percent(20)
    {
        return Some(Action::Register { document, large });
    }
    let recipients: Vec<_> = group.recipients.values().collect();
    let undecided: Vec<_> = recipients.iter().filter(|known| known.decisions == 0).map(|known| known.id).collect();
    if let Some(recipient) = chance.pick(&undecided) {
        return Some(match chance.below(12) {
            0 => Action::Reject { recipient },
            1 => Action::Submit { recipient },
            _ => Action::Approve { recipient },
        });
    }
    if chance.percent(45)
        && let Some(action) = plan_closing(group, chance)
    {
        return Some(action);
    }
    Some(match chance.below(100) {
        0..30 => {
            let (amount, splits) = plan_splits(group, chance);
            Action::OpenCard { amount, installments: chance.between(1, 12) as u8, splits, large }
        }
        30..55 => {
            let (amount, splits) = plan_splits(group, chance);
            Action::OpenPix { amount, splits }
        }
        55..57 if !recipients.is_empty() => {
            let recipient = recipients[chance.below(recipients.len())].id;
            if chance.percent(50) { Action::Approve { recipient } } else { Action::Submit { recipient } }
        }
        57..59 => Action::Register { document: chance.below(usize::from(recipients_max)) as u8, large },
        _ => {
            let ledgers = recipients.iter().map(|known| LedgerId::Recipient(number, known.number));
            let mut ledgers: Vec<_> = ledgers.collect();
            if ledgers.is_empty() || chance.percent(25) {
                ledgers = vec![LedgerId::Merchant(number)];
            }
            Action::Read(chance.pick(&ledgers).unwrap_or(LedgerId::Merchant(number)))
        }
    })
}

/// Mostly a charge that nobody has tried to close; at times one that somebody has, or a card charge
/// that has ended. What happens to a card charge is its acquirer's to say.
fn plan_closing(group: &Group, chance: &mut Chance) -> Option<Action> {
    let (is_any, tries_max) = (chance.percent(3), if chance.percent(12) { u32::MAX } else { 0 });
    let fits = |charge: &Charge| {
        let is_open = charge.closing.is_none() && charge.tries <= tries_max;
        charge.is_known && (is_open || (is_any && charge.is_card))
    };
    let open = group.charges.iter().filter(|(_, charge)| fits(charge));
    let open: Vec<_> = open.map(|(id, charge)| (*id, charge.is_card, charge.amount)).collect();
    close(&open, chance)
}

fn close(open: &[(ObjectId, bool, i64)], chance: &mut Chance) -> Option<Action> {
    let (charge, is_card, amount) = chance.pick(open)?;
    Some(match (is_card, chance.below(10)) {
        (true, _) => Action::Capture { charge },
        (false, 0 | 1) => Action::Cancel { charge },
        (false, _) => Action::Confirm { charge, amount },
    })
}

/// An amount and its parts: mostly within the rules, at times leaving the seller less than nothing,
/// at times against the rules.
fn plan_splits(group: &Group, chance: &mut Chance) -> (i64, Vec<(ObjectId, i64)>) {
    let amount = if chance.percent(25) { chance.between(10, 600) } else { chance.between(1_000, 100_000) };
    let against_the_rules = chance.percent(4);
    let active = group.recipients.values().filter(|known| known.is_active || against_the_rules);
    let recipients: Vec<_> = active.map(|known| known.id).collect();
    let mut left = if chance.percent(3) { amount * 2 } else { amount - 1 };
    let mut splits = Vec::new();
    for _ in 0..chance.below(4) {
        if let Some(recipient) = chance.pick(&recipients)
            && left > 0
        {
            let part = chance.between(1, left);
            left -= part;
            splits.push((recipient, part));
        }
    }
    (amount, splits)
}

fn command(action: &Action, charge: ObjectId, world: &mut World) -> MerchantCommand {
    let small = || Sealed { month: 600, bytes: vec![1; 40], version: 0 };
    let sealed =
        |large: bool| if large { Sealed { month: 600, bytes: vec![1; 270 * 1024], version: 0 } } else { small() };
    let orders = |splits: &[(ObjectId, i64)]| {
        let order =
            |(recipient, amount): &(ObjectId, i64)| SplitRequest { recipient: *recipient, amount: Centavos(*amount) };
        splits.iter().map(order).collect::<Vec<_>>()
    };
    let group = world.ids.group(charge);
    match action {
        Action::OpenMerchant => {
            let days = world.chance.pick(&[0, 1, 30]).unwrap_or(30);
            let options = Options { card_settlement_days: days, ..Options::default() };
            let settings = Settings { split_enabled: true, options, ..Settings::default() };
            MerchantCommand::Open { id: charge, settings, profile: small() }
        }
        Action::Register { document, large } => MerchantCommand::RegisterRecipient {
            random: world.chance.next() as u16,
            document: fingerprint(u64::from(*document), group.0),
            profile: sealed(*large),
        },
        Action::Submit { recipient } => MerchantCommand::SubmitRecipient { id: *recipient },
        Action::Approve { recipient } => MerchantCommand::ApproveRecipient { id: *recipient },
        Action::Reject { recipient } => MerchantCommand::RejectRecipient { id: *recipient, notes: "no".into() },
        Action::OpenCard { amount, installments, splits, large } => MerchantCommand::OpenCard {
            charge,
            amount: Centavos(*amount),
            method: PaymentMethod::CreditCard,
            installments: *installments,
            splits: orders(splits),
            card: CardFace { bin: 400_000, last4: 2, brand: CardBrand::Visa },
            payer: sealed(*large),
            rail: None,
        },
        Action::Capture { charge } => {
            MerchantCommand::CaptureCard { charge: *charge, acquirer_mdr: Centavos(3), captured_at: None, brand: None }
        }
        Action::Refuse { charge } => {
            MerchantCommand::RefuseCard { charge: *charge, refusal: CardRefusal::NotAuthorized }
        }
        Action::LeaveUnanswered { charge } => MerchantCommand::LeaveUnanswered { charge: *charge },
        Action::Authorize { charge } => MerchantCommand::AuthorizeCard { charge: *charge, brand: None },
        Action::TryOrder { charge, attempt } => MerchantCommand::TryOrder { id: *charge, attempt: *attempt },
        Action::OpenPix { amount, splits } => MerchantCommand::OpenPix {
            charge,
            amount: Centavos(*amount),
            splits: orders(splits),
            expires_at: world.now.plus_days(1),
            payer: small(),
            rail: None,
        },
        Action::Confirm { charge, amount } => {
            MerchantCommand::ConfirmPix { charge: *charge, amount: Centavos(*amount), end_to_end_id: "E".repeat(32) }
        }
        Action::Cancel { charge } => MerchantCommand::CancelPix { charge: *charge },
        Action::Read(_) => unreachable!("a read is no command"),
    }
}

fn count(event: &Event, world: &mut World) {
    match event {
        Event::CardCaptured { seller, .. } | Event::PixPaid { seller, .. } => {
            let is_card = matches!(event, Event::CardCaptured { .. });
            world.coverage.saw(if is_card { "money captured" } else { "money paid by PIX" });
            if seller.to_deficit.is_positive() {
                world.coverage.saw("deficit");
            }
        }
        Event::CardRefused { .. } => world.coverage.saw("charge refused by the acquirer"),
        Event::CardUnanswered { .. } => world.coverage.saw("card left unanswered"),
        Event::CardAuthorized { .. } => world.coverage.saw("card authorized"),
        Event::PixCancelled { .. } => world.coverage.saw("charge cancelled"),
        _ => {}
    }
}

/// Stands in for a keyed digest: two numbers, side by side.
fn fingerprint(number: u64, space: u32) -> Fingerprint {
    Fingerprint(((u128::from(space) << 64) | u128::from(number)).to_be_bytes())
}
