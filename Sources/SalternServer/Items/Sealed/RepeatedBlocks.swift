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
