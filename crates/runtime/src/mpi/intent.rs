//! What a user says beforehand of how a new file will be used (thesis, section 3.7, the user-assisted open): `stripewise_intent`, a key of the open's info,
//! `RS=64KiB RE=16MiB read=90`: bytes of a request, bytes that one process has in one piece, and the part of all bytes that are read, percent.

use crate::open::striping::Intended;
use stripewise_engine::Intent;

/// From so many percent on a file is one that is read.
const READ_PERCENT: u64 = 50;

/// The intent in a hint's text: all three of its words, in any order, with blanks or commas between them; none where it is something else.
pub fn parse(text: &[u8]) -> Option<Intended> {
    let (mut request, mut region, mut read) = (None, None, None);
    for word in text.split(|byte| matches!(byte, b' ' | b',' | b'\t')).filter(|word| !word.is_empty()) {
        let at = word.iter().position(|byte| *byte == b'=')?;
        let (key, value) = (word.get(..at)?, word.get(at + 1..)?);
        let (place, value) = match key {
            b"RS" => (&mut request, size(value)?),
            b"RE" => (&mut region, size(value)?),
            b"read" => (&mut read, decimal(value).filter(|percent| *percent <= 100)?),
            _ => return None,
        };
        if place.replace(value).is_some() {
            return None;
        }
    }
    let intent = if read? >= READ_PERCENT { Intent::Read } else { Intent::Write };
    Some(Intended { intent, request: request.filter(|bytes| *bytes > 0)?, region: region.filter(|bytes| *bytes > 0)? })
}

/// A whole number in digits.
pub(super) fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |sum, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Bytes: a number, or one with KiB, MiB or GiB behind it; less than what files may have.
fn size(text: &[u8]) -> Option<u64> {
    let digits = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit {
        b"" => 0,
        b"KiB" => 10,
        b"MiB" => 20,
        b"GiB" => 30,
        _ => return None,
    };
    decimal(number)?.checked_mul(1 << shift).filter(|bytes| *bytes < 1 << 62)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_intent_is_three_words_in_any_order() {
        let meant = Some(Intended { intent: Intent::Read, request: 65_536, region: 16 << 20 });
        for text in ["RS=64KiB RE=16MiB read=90", "read=50,RE=16777216,RS=65536", "  RE=16MiB\tread=100 , RS=65536 "] {
            assert_eq!(parse(text.as_bytes()), meant, "{text}");
        }
        assert_eq!(parse(b"RS=1 RE=1GiB read=49"), Some(Intended { intent: Intent::Write, request: 1, region: 1 << 30 }));
    }

    #[test]
    fn whatever_else_there_is_is_none() {
        let odd = [
            "",
            "RS=64KiB",
            "RS=64KiB RE=16MiB",
            "RS=64KiB RE=16MiB read=101",
            "RS=64KiB RE=16MiB read=-1",
            "RS=0 RE=1MiB read=1",
            "RS=1 RE=0 read=1",
            "RS=64kB RE=16MiB read=9",
            "RS=64KiB RS=64KiB RE=16MiB read=9",
            "RS = 64KiB RE=16MiB read=9",
            "RS=64KiB RE=16MiB read=9 x=1",
            "RS=4611686018427387904 RE=1 read=1",
            "RS=99999999999999GiB RE=1 read=1",
            "RS=1 RE=KiB read=1",
        ];
        for text in odd {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_decimal_and_nothing_else() {
        assert_eq!([decimal(b"0"), decimal(b"65536"), decimal(b"18446744073709551615")], [Some(0), Some(65_536), Some(u64::MAX)]);
        for text in [&b""[..], b"-1", b"64k", b"1 1", b"18446744073709551616", b"1e3"] {
            assert_eq!(decimal(text), None);
        }
    }
}
