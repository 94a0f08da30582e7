/// How much the length of sealed bytes tells: multiples of 64 up to 1 KiB, then PADMÉ (Nikitin et al., "Reducing Metadata
/// Leakage from Encrypted Files and Communication with PURBs", 2019, section 4): at most 12 % more, and only
/// O(log log n) bits about the length.
enum Padding {
    static let block = 64
    private static let small = 1_024

    /// The length that `count` bytes get.
    static func paddedCount(_ count: Int) -> Int {
        if count <= small { return max(block, (count + block - 1) / block * block) }
        let exponent = Int.bitWidth - 1 - count.leadingZeroBitCount
        let kept = Int.bitWidth - exponent.leadingZeroBitCount
        let mask = (1 << (exponent - kept)) - 1
        return (count + mask) & ~mask
    }

    /// Whether some content gets this length.
    static func isPadded(_ count: Int) -> Bool { count >= block && paddedCount(count) == count }
}
