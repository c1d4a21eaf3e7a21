use std::io::Write;

use resources::{AccountId, MemoryBudget};

use super::*;

const TEXT: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_chainId\"}";
const BYTES_MAX: usize = 5 << 20;

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    zstd::encode_all(text, 19).unwrap()
}

fn inflated(coding: RequestCoding, body: &[u8]) -> Result<Vec<u8>, Refused> {
    inflated_with(coding, body, &MemoryBudget::new(64 << 20))
}

fn inflated_with(coding: RequestCoding, body: &[u8], memory: &MemoryBudget) -> Result<Vec<u8>, Refused> {
    let inflated = inflate(coding, body, BYTES_MAX, memory.of(AccountId::unique()), |_| Ok(()));
    inflated.map(|buffer| buffer.into_parts().0)
}

#[test]
fn one_member_or_frame_is_a_body() {
    for (coding, whole) in [(RequestCoding::Gzip, gzip(TEXT)), (RequestCoding::Zstd, zstd(TEXT))] {
        assert_eq!(inflated(coding, &whole).as_deref(), Ok(TEXT), "{coding:?}");
        for cut in [0, 1, 5, whole.len() / 2, whole.len() - 1] {
            let cut = inflated(coding, &whole[..cut]);
            assert!(cut.as_ref().is_ok_and(Vec::is_empty) || cut == Err(Refused::BadEncoding), "{cut:?}");
        }
        assert_eq!(inflated(coding, TEXT), Err(Refused::BadEncoding));
        let followed = [&whole[..], b"x"].concat();
        assert_eq!(inflated(coding, &followed), Err(Refused::BadEncoding));
    }
}

/// A body of 64 KiB with thousands of empty members or frames took a millisecond and inflated to nothing.
#[test]
fn many_members_or_frames_are_refused_at_the_second() {
    for (coding, empty) in [(RequestCoding::Gzip, gzip(b"")), (RequestCoding::Zstd, zstd(b""))] {
        assert_eq!(inflated(coding, &empty.repeat(2)), Err(Refused::BadEncoding), "{coding:?}");
    }
}

#[test]
fn bombs_end_at_the_limit() {
    let huge = vec![b' '; BYTES_MAX + 1];
    for (coding, bomb) in [(RequestCoding::Gzip, gzip(&huge)), (RequestCoding::Zstd, zstd(&huge))] {
        assert_eq!(inflated(coding, &bomb), Err(Refused::TooLarge), "{coding:?}");
    }
}

/// The window of a body was allocated without being charged to anybody.
#[test]
fn the_memory_of_a_decoder_is_charged_before_it_is_allocated() {
    let small = MemoryBudget::new(1 << 20);
    assert_eq!(inflated_with(RequestCoding::Gzip, &gzip(TEXT), &small).as_deref(), Ok(TEXT));
    assert_eq!(inflated_with(RequestCoding::Zstd, &zstd(TEXT), &small), Err(Refused::OverCapacity));
    assert_eq!(small.bytes(), 0, "everything is given back");
}

/// The head of a frame without a stated length, with a window of two to the power of `log`, and its last, empty block.
fn frame_with_window(log: u8) -> Vec<u8> {
    vec![0x28, 0xb5, 0x2f, 0xfd, 0, (log - 10) << 3, 1, 0, 0]
}

#[test]
fn a_wider_window_than_is_charged_is_refused() {
    let widest = ZSTD_WINDOW_LOG_MAX as u8;
    assert_eq!(inflated(RequestCoding::Zstd, &frame_with_window(widest)), Ok(Vec::new()));
    assert_eq!(inflated(RequestCoding::Zstd, &frame_with_window(widest + 1)), Err(Refused::BadEncoding));
}

/// An account that could not pay for a bomb had it decompressed all the same.
#[test]
fn decompression_ends_when_it_cannot_be_paid_for() {
    let memory = MemoryBudget::new(64 << 20);
    for (coding, body) in
        [(RequestCoding::Gzip, gzip(&vec![b' '; 1 << 20])), (RequestCoding::Zstd, zstd(&vec![b' '; 1 << 20]))]
    {
        let mut most = 0;
        let outcome = inflate(coding, &body, BYTES_MAX, memory.of(AccountId::unique()), |inflated| {
            most = inflated;
            if inflated > 100 << 10 { Err(Refused::TooSlow) } else { Ok(()) }
        });
        assert_eq!(outcome.err(), Some(Refused::TooSlow));
        assert!(most <= (100 << 10) + STEP_BYTES, "{most} bytes");
    }
}
