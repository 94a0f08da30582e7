internal import Glibc

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
