//! The reply of a node → its meaning. Nodes may write the same meaning in different ways.

pub(super) mod record; // objects of nodes, with the members that we know

use std::borrow::Cow;

use alloy_primitives::Bytes as Data;
use bytes::Bytes;
use methods::{
    BlockPart, BlockQuery, BlockRef, FeeQuery, SimulationKind, StateValue, TransactionPart, TransactionQuery,
};
use nodes::dialect::{Execution, Meaning};
use nodes::{CallerError, NodeReply};

use self::record::{Record, RecordForm, RecordKind, RecordSubject};

use crate::chain_query::ChainQuery;

/// 256 bits.
const QUANTITY_DIGITS_MAX: usize = 64;

/// Digits of a storage value.
const WORD_DIGITS: usize = 64;

/// Digits of an estimate: 128 bits, far more gas than any block has.
const ESTIMATE_DIGITS_MAX: usize = 32;

/// The meaning of one node's reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    /// The result, as we write it.
    Result(Bytes),
    /// A number that clients find with some tolerance.
    Estimate(u128),
    Reverted(Data),
    /// The EVM stopped for another reason, or would not begin.
    Stopped(Execution),
    /// An object or a list of objects.
    Record(Box<Record>),
    /// The node does not search as many blocks at once, or gives fewer logs.
    TooWide,
}

impl Statement {
    /// Whether two nodes that say this agree. How much gas a message may have at most is a detail that some leave out, and in
    /// which batch of layer 1 a block is becomes known to one node sooner than to another.
    pub(super) fn means_the_same_as(&self, other: &Self) -> bool {
        use Execution::GasAllowance;
        match (self, other) {
            (Self::Stopped(GasAllowance { .. }), Self::Stopped(GasAllowance { .. })) => true,
            (Self::Record(one), Self::Record(other)) => one.settled == other.settled,
            _ => self == other,
        }
    }

    pub(super) fn estimate(&self) -> Option<u128> {
        match self {
            Self::Estimate(estimate) => Some(*estimate),
            _ => None,
        }
    }

    /// Whether this cannot be true where a quorum says `agreed`. How much gas, time or tolerance a node grants is its own
    /// affair, and some do not tell the data of a revert.
    pub(super) fn is_contradicted_by(&self, agreed: &Self) -> bool {
        match (self, agreed) {
            (Self::Estimate(_), Self::Estimate(_)) => false,
            // Nodes that are not at the same block may differ without a fault.
            (Self::Record(one), Self::Record(other)) => {
                one.block.is_some() && one.block == other.block && one.settled != other.settled
            }
            (Self::Record(_), _) | (_, Self::Record(_)) => false,
            (Self::Reverted(one), Self::Reverted(other)) if one.is_empty() || other.is_empty() => false,
            _ => {
                !self.depends_on_the_node()
                    && !agreed.depends_on_the_node()
                    && !self.means_the_same_as(agreed)
            }
        }
    }

    /// Whether honest nodes may differ in this, because each has limits of its own.
    pub(super) fn depends_on_the_node(&self) -> bool {
        let Self::Stopped(execution) = self else { return *self == Self::TooWide };
        matches!(
            execution,
            Execution::OutOfGas
                | Execution::GasAllowance { .. }
                | Execution::GasAboveLimit { .. }
                | Execution::Timeout
                | Execution::Failed
        )
    }
}

/// The form that a result must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Quantity,
    Estimate,
    Data,
    /// 32 bytes.
    Word,
    Record(RecordForm),
}

/// Why a reply is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoStatement {
    /// The node has nothing where there is something.
    NotThere,
    /// It is not what was asked for.
    Malformed,
}

impl Form {
    /// The form of answers that no block proves; `None` for queries that are not confirmed. Where blocks cannot
    /// be proven, `with_blocks`, what is in them is confirmed, too.
    pub(super) fn of(query: ChainQuery<'_>, with_blocks: bool) -> Option<Self> {
        match query {
            ChainQuery::Fees(FeeQuery::NextBlock(_)) => Some(Self::Estimate),
            ChainQuery::Fees(FeeQuery::History { .. }) => Some(Self::Record(RecordForm {
                kind: RecordKind::FeeHistory,
                is_list: false,
                may_be_null: false,
                about: RecordSubject::Anything,
            })),
            ChainQuery::State(query) => Some(match query.value {
                StateValue::Balance | StateValue::TransactionCount => Self::Quantity,
                StateValue::Code => Self::Data,
                StateValue::Storage { .. } => Self::Word,
            }),
            ChainQuery::Simulation(query) => Some(match query.kind {
                SimulationKind::Call => Self::Data,
                SimulationKind::Estimate => Self::Estimate,
            }),
            ChainQuery::RawTransactions(_) => Some(Self::list_of(RecordKind::RawTransaction)),
            ChainQuery::Block(query) => with_blocks.then(|| Self::of_block_part(query)),
            ChainQuery::Transaction(query) => with_blocks.then(|| Self::of_transaction(query)),
        }
    }

    fn of_block_part(query: BlockQuery<BlockRef>) -> Self {
        let BlockQuery { block, part } = query;
        let one = |kind, about| RecordForm { kind, is_list: false, may_be_null: true, about };
        match part {
            BlockPart::TransactionCount | BlockPart::UncleCount => Self::Quantity,
            BlockPart::Whole { .. } => Self::Record(RecordForm {
                may_be_null: false,
                ..one(RecordKind::Block, RecordSubject::Block(block))
            }),
            BlockPart::Header => Self::Record(RecordForm {
                may_be_null: false,
                ..one(RecordKind::Header, RecordSubject::Block(block))
            }),
            BlockPart::Receipts => Self::Record(RecordForm {
                is_list: true,
                may_be_null: false,
                ..one(RecordKind::Receipt, RecordSubject::InBlock(block))
            }),
            BlockPart::Uncle { .. } => Self::Record(one(RecordKind::Header, RecordSubject::Anything)),
            BlockPart::Transaction { .. } => {
                Self::Record(one(RecordKind::Transaction, RecordSubject::InBlock(block)))
            }
        }
    }

    fn of_transaction(query: TransactionQuery) -> Self {
        let kind = match query.part {
            TransactionPart::Transaction => RecordKind::Transaction,
            TransactionPart::Receipt => RecordKind::Receipt,
        };
        let about = RecordSubject::Transaction(query.hash);
        Self::Record(RecordForm { kind, is_list: false, may_be_null: true, about })
    }

    fn list_of(kind: RecordKind) -> Self {
        Self::Record(RecordForm { kind, is_list: true, may_be_null: false, about: RecordSubject::Anything })
    }

    /// The logs of a range.
    pub(super) fn logs() -> Self {
        Self::list_of(RecordKind::Log)
    }

    /// Reads what a node said.
    pub(super) fn read(self, said: &NodeReply) -> Result<Statement, NoStatement> {
        match said {
            NodeReply::Result(result) => self.read_result(result),
            NodeReply::Error(CallerError(Meaning::Reverted { data })) => {
                Ok(Statement::Reverted(data.clone().unwrap_or_default()))
            }
            NodeReply::Error(CallerError(Meaning::Execution(execution))) => {
                Ok(Statement::Stopped(*execution))
            }
            NodeReply::Limit(_) => Ok(Statement::TooWide),
            NodeReply::Error(_) => Err(NoStatement::NotThere),
        }
    }

    fn read_result(self, result: &Bytes) -> Result<Statement, NoStatement> {
        if let Self::Record(form) = self {
            return form.read(result);
        }
        let text = result.trim_ascii();
        if text == b"null" {
            return Err(NoStatement::NotThere);
        }
        let digits = text.strip_prefix(b"\"0x").and_then(|rest| rest.strip_suffix(b"\""));
        let digits =
            digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit)).ok_or(NoStatement::Malformed)?;
        match self {
            Self::Quantity if (1..=QUANTITY_DIGITS_MAX).contains(&digits.len()) => {
                Ok(Statement::Result(quoted(result, significant(digits))))
            }
            Self::Estimate if (1..=ESTIMATE_DIGITS_MAX).contains(&significant(digits).len()) => {
                let number =
                    std::str::from_utf8(digits).ok().and_then(|digits| u128::from_str_radix(digits, 16).ok());
                number.map(Statement::Estimate).ok_or(NoStatement::Malformed)
            }
            Self::Data if digits.len().is_multiple_of(2) => Ok(Statement::Result(quoted(result, digits))),
            Self::Word if digits.len() == WORD_DIGITS => Ok(Statement::Result(quoted(result, digits))),
            // Some nodes write a storage value like a number.
            Self::Word if digits.len() < WORD_DIGITS => {
                let padded = [&[b'0'; WORD_DIGITS][digits.len()..], digits].concat();
                Ok(Statement::Result(quoted(result, &padded)))
            }
            _ => Err(NoStatement::Malformed),
        }
    }
}

/// Without leading zeros, but for a single one.
fn significant(digits: &[u8]) -> &[u8] {
    let first = digits.iter().position(|digit| *digit != b'0').unwrap_or(digits.len().saturating_sub(1));
    &digits[first..]
}

/// Digits as a string in lower case. A result that is written like that already is not copied.
fn quoted(result: &Bytes, digits: &[u8]) -> Bytes {
    let digits: Cow<'_, [u8]> = match digits.iter().any(u8::is_ascii_uppercase) {
        true => digits.to_ascii_lowercase().into(),
        false => digits.into(),
    };
    if result.len() == digits.len() + 4 && result[3..result.len() - 1] == *digits {
        return result.clone();
    }
    [b"\"0x", &*digits, b"\""].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(form: Form, text: &'static str) -> Result<Statement, NoStatement> {
        form.read(&NodeReply::Result(Bytes::from_static(text.as_bytes())))
    }

    fn result(text: &'static str) -> Result<Statement, NoStatement> {
        Ok(Statement::Result(Bytes::from_static(text.as_bytes())))
    }

    #[test]
    fn what_means_the_same_is_read_as_the_same() {
        for (form, text, meaning) in [
            (Form::Quantity, "\"0x1aB\"", "\"0x1ab\""),
            (Form::Quantity, " \"0x0001ab\"\n", "\"0x1ab\""),
            (Form::Quantity, "\"0x00\"", "\"0x0\""),
            (Form::Data, "\"0x\"", "\"0x\""),
            (Form::Data, "\"0x00AB\"", "\"0x00ab\""),
        ] {
            assert_eq!(read(form, text), result(meaning), "{text}");
        }
        assert_eq!(read(Form::Estimate, "\"0x05208\""), Ok(Statement::Estimate(21_000)));
    }

    /// A node that wrote a storage value as `0x0` was excluded for minutes.
    #[test]
    fn a_storage_value_without_leading_zeros_is_the_same_value() {
        let whole = |digits: &str| Bytes::from(format!("\"0x{digits:0>64}\""));
        for (text, digits) in [("\"0x0\"", "0"), ("\"0x\"", ""), ("\"0x1Ab\"", "1ab")] {
            assert_eq!(read(Form::Word, text), Ok(Statement::Result(whole(digits))), "{text}");
        }
    }

    #[test]
    fn what_has_another_form_is_no_answer() {
        for (form, text) in [
            (Form::Quantity, "\"0x\""),
            (Form::Quantity, "\"12\""),
            (Form::Quantity, "{\"note\":1}"),
            (Form::Data, "\"0x1\""),
            (Form::Data, "\"0xzz\""),
            (Form::Word, "\"0x10000000000000000000000000000000000000000000000000000000000000000\""),
            (Form::Estimate, "\"0x\""),
            (Form::Estimate, "\"0x100000000000000000000000000000000\""),
        ] {
            assert_eq!(read(form, text), Err(NoStatement::Malformed), "{text}");
        }
        assert_eq!(read(Form::Word, "null"), Err(NoStatement::NotThere));
    }

    #[test]
    fn an_answer_that_is_written_as_we_write_it_is_not_copied() {
        let text = Bytes::from_static(b"\"0x00ab\"");
        let Ok(Statement::Result(read)) = Form::Data.read(&NodeReply::Result(text.clone())) else { panic!() };
        assert_eq!(read.as_ptr(), text.as_ptr());
    }
}
