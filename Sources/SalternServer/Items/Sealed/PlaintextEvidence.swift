internal import Glibc

/// Distinguishes evident plaintext from ciphertext.
///
/// Ciphertext resembles uniformly random bytes, so each test has a probability of rejecting random bytes. Bytes that a
/// format prescribes are left out. The tests cover all bytes after them, and once more the ciphertext alone, so that a
/// real nonce in front of plain text hides nothing.
///
/// | Test | Random bytes fail it with probability |
/// | --- | --- |
/// | text of n bytes (``PlainText``) | at most 0.47^n |
/// | text with other bytes in it (``TextLikelihood``) | at most 10^-14 |
/// | known file formats (``FileSignature``) | below 3·10^-13 in all |
/// | one byte value too often, relative entropy (``ByteHistogram``) | below 2·10^-13 |
/// | a repeated block of 16 bytes | below 3·10^-32 |
///
/// From 38 bytes on, fewer than one payload in 10^12 is rejected wrongly: 0.47^38 + 10^-14 + 5·10^-13 < 9·10^-13.
/// RNCryptor's shortest message is longer, and under GCM 38 bytes are 10 bytes of plaintext. A ciphertext of at least
/// 40 bytes is tested twice: 0.47^40 + 2·(10^-14 + 3·10^-13) + 2·10^-13 < 10^-12.
///
/// Shorter payloads are rejected if they are text, because a whole password can have 16 bytes. For 28 bytes of GCM (an
/// empty plaintext) the probability is 6·10^-10, for 16 bytes of `opaque` 6·10^-6. Sealing again draws a new nonce and
/// passes.
enum PlaintextEvidence {
    /// The minimum length of text that is evidence.
    static let textThreshold = 16
    /// The minimum length of ciphertext that is also tested without nonce and tag: 0.47^40 < 10^-13.
    static let ciphertextThreshold = 40
    /// The maximum number of bytes that are counted and compared. More would take longer without sharper tests.
    static let sampleLimit = 65_536

    /// Returns true if sealed bytes are evidently plaintext.
    static func isFound(in sealed: [UInt8], layout: SealedFormat.Layout) -> Bool {
        sealed.withUnsafeBytes { sealed in
            let body = UnsafeRawBufferPointer(rebasing: sealed[layout.header...])
            if isTextOrFile(body, textThreshold: textThreshold) { return true }
            let ciphertext = UnsafeRawBufferPointer(
                rebasing: sealed[layout.beforeCiphertext..<(sealed.count - layout.afterCiphertext)])
            if ciphertext.count < body.count, ciphertext.count >= ciphertextThreshold,
                isTextOrFile(ciphertext, textThreshold: ciphertextThreshold)
            {
                return true
            }
            let sample = UnsafeRawBufferPointer(rebasing: ciphertext.prefix(sampleLimit))
            return RepeatedBlocks.areFound(in: sample) || ByteHistogram.isImprobable(body.prefix(sampleLimit))
        }
    }

    private static func isTextOrFile(_ bytes: UnsafeRawBufferPointer, textThreshold: Int) -> Bool {
        let sample = UnsafeRawBufferPointer(rebasing: bytes.prefix(sampleLimit))
        if bytes.count >= textThreshold, PlainText.isText(sample, isCut: sample.count < bytes.count) { return true }
        if bytes.count >= textThreshold, TextLikelihood.isFound(in: sample) { return true }
        return FileSignature.isFound(in: bytes)
    }
}

/// Finds two equal blocks of 16 bytes, which plain data and ECB mode have.
///
/// Among m blocks of random bytes two are equal with probability below m²/2^129: for 64 KiB (m = 4096) below 3·10^-32.
enum RepeatedBlocks {
    private static let blockSize = 16

    /// Compares all whole blocks from the start, with a small open-addressed table of their positions.
    static func areFound(in bytes: UnsafeRawBufferPointer) -> Bool {
        let count = bytes.count / blockSize
        guard count > 1 else { return false }
        let slots = 1 << (Int.bitWidth - (count * 2 - 1).leadingZeroBitCount)
        return withUnsafeTemporaryAllocation(of: Int32.self, capacity: slots) { table in
            table.initialize(repeating: -1)
            for block in 0..<count {
                let (first, second) = words(of: block, in: bytes)
                // Colliding blocks of an attacker slow down only the check of their own 64 KiB, and only up to the
                // limit of probes.
                var slot = Int(truncatingIfNeeded: (first ^ second << 1) &* 0x9E37_79B9_7F4A_7C15 >> 48) & (slots - 1)
                var probes = 0
                while table[slot] >= 0, probes < probeLimit {
                    if words(of: Int(table[slot]), in: bytes) == (first, second) { return true }
                    slot = (slot + 1) & (slots - 1)
                    probes += 1
                }
                if probes < probeLimit { table[slot] = Int32(block) }
            }
            return false
        }
    }

    private static let probeLimit = 64

    private static func words(of block: Int, in bytes: UnsafeRawBufferPointer) -> (UInt64, UInt64) {
        let offset = block * blockSize
        return (
            bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self),
            bytes.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self)
        )
    }
}

/// Recognises valid UTF-8 without control characters other than tab, line feed, form feed and carriage return.
///
/// Let t(n) be the probability that n random bytes are such text. The first character takes:
///
/// - one byte: 99 of 256 values
/// - two bytes: 30·64 - 32 of 256² values (no C1 controls)
/// - three bytes: 16·64² - 2048 - 2048 of 256³ values (no overlong forms, no surrogates)
/// - four bytes: 2^20 of 256⁴ values
///
/// So t(n) <= 0.3868·t(n-1) + 0.0289·t(n-2) + 0.0037·t(n-3) + 0.0003·t(n-4), with t(0) = 1 and equality but for the
/// end. The largest root of that recurrence is 0.459, and 0.47^n bounds t(n).
enum PlainText {
    /// Returns true if all bytes are text. It stops at the first other byte: for ciphertext after two bytes on average.
    ///
    /// - Parameter isCut: True if the bytes may end within a character.
    static func isText(_ bytes: UnsafeRawBufferPointer, isCut: Bool = false) -> Bool {
        var index = 0
        while index < bytes.count {
            guard let length = characterLength(at: index, in: bytes) else {
                return isCut && bytes.count - index < longestCharacter
            }
            index += length
        }
        return true
    }

    private static let longestCharacter = 4

    /// Returns the length of the character that starts here (Unicode 16, table 3-7). Nil if no character of text does.
    private static func characterLength(at index: Int, in bytes: UnsafeRawBufferPointer) -> Int? {
        let first = bytes[index]
        switch first {
        case 0x09, 0x0A, 0x0C, 0x0D, 0x20...0x7E:
            return 1
        case 0xC2:
            return hasTail(0xA0...0xBF, count: 1, at: index, in: bytes) ? 2 : nil
        case 0xC3...0xDF:
            return hasTail(0x80...0xBF, count: 1, at: index, in: bytes) ? 2 : nil
        case 0xE0:
            return hasTail(0xA0...0xBF, count: 2, at: index, in: bytes) ? 3 : nil
        case 0xED:
            return hasTail(0x80...0x9F, count: 2, at: index, in: bytes) ? 3 : nil
        case 0xE1...0xEF:
            return hasTail(0x80...0xBF, count: 2, at: index, in: bytes) ? 3 : nil
        case 0xF0:
            return hasTail(0x90...0xBF, count: 3, at: index, in: bytes) ? 4 : nil
        case 0xF1...0xF3:
            return hasTail(0x80...0xBF, count: 3, at: index, in: bytes) ? 4 : nil
        case 0xF4:
            return hasTail(0x80...0x8F, count: 3, at: index, in: bytes) ? 4 : nil
        default:
            return nil
        }
    }

    /// Returns true if `count` bytes follow, the first of them in `range` and the others continuation bytes.
    private static func hasTail(
        _ range: ClosedRange<UInt8>, count: Int, at index: Int, in bytes: UnsafeRawBufferPointer
    ) -> Bool {
        guard index + count < bytes.count, range.contains(bytes[index + 1]) else { return false }
        return bytes[(index + 2)..<(index + 1 + count)].allSatisfy { (0x80...0xBF).contains($0) }
    }
}

/// Detects frequencies of byte values that ciphertext practically never has.
///
/// Two bounds that hold exactly for every length n, each set to 10^-13:
///
/// - *One value too often.* Some value comes at least m times with probability at most 256·C(n,m)/256^m (a union over
///   values and positions). The least m with a bound of 10^-13 is found by multiplying up. It catches UTF-16 (every
///   other byte is zero) from 20 bytes on, and padded structures.
/// - *Relative entropy.* Let D be the divergence of the frequencies from the uniform distribution, in nats. Then P(n·D
///   >= t) <= e^-t·(e·t/255)^255 for t > 255 (R. Agrawal, "Finite-sample concentration of the multinomial in relative
///   entropy", IEEE Transactions on Information Theory 66 (2020), theorem I.2, for k = 256 values). For t = 255·(1+d)
///   the bound is e^(-255·(d - ln(1+d))); t = 400 has d = 0.5686, hence e^-30.2 < 10^-13. The expected value for
///   ciphertext is 127.5. English prose passes 400 after some 160 bytes, machine code and uncompressed tables after a
///   few hundred.
enum ByteHistogram {
    /// The value of n·D in nats from which bytes are rejected.
    static let divergenceLimit = 400.0
    /// The probability of each of the two bounds.
    private static let improbable = 1e-13

    /// Returns true if the histogram is evidence against ciphertext.
    static func isImprobable(_ bytes: Slice<UnsafeRawBufferPointer>) -> Bool {
        withUnsafeTemporaryAllocation(of: Int32.self, capacity: 256) { counts in
            counts.initialize(repeating: 0)
            for byte in UnsafeRawBufferPointer(rebasing: bytes) { counts[Int(byte)] &+= 1 }
            var greatest: Int32 = 0
            for count in counts { greatest = max(greatest, count) }
            if Int(greatest) >= improbableCount(ofOneValueIn: bytes.count) { return true }
            return divergence(of: UnsafeBufferPointer(counts), total: bytes.count) >= divergenceLimit
        }
    }

    /// Returns the least m for which some value comes m times or more with a probability of at most 10^-13.
    static func improbableCount(ofOneValueIn total: Int) -> Int {
        var bound = 256.0
        var count = 0
        while bound > improbable, count <= total {
            bound *= Double(total - count) / Double(256 * (count + 1))
            count += 1
        }
        return count
    }

    /// Returns n·D = Σ c·ln(c) - n·ln(n/256).
    private static func divergence(of counts: UnsafeBufferPointer<Int32>, total: Int) -> Double {
        guard total > 0 else { return 0 }
        var sum = 0.0
        for count in counts {
            let count = Int(count)
            sum += count < countTable.count ? countTable[count] : Double(count) * log(Double(count))
        }
        return sum - Double(total) * log(Double(total) / 256)
    }

    /// c·ln(c) for the counts of ciphertext up to 64 KiB.
    private static let countTable: [Double] = (0..<512).map { $0 == 0 ? 0 : Double($0) * log(Double($0)) }
}
