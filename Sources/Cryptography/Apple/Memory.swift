internal import Foundation

/// Overwrites memory with zeros, in a way that no optimiser removes.
func wipe(_ memory: UnsafeMutableRawBufferPointer) {
    guard let base = memory.baseAddress else { return }
    _ = memset_s(base, memory.count, 0, memory.count)
}

/// Compares `count` bytes in time that depends on `count` only.
func equalsInConstantTime(_ left: UnsafeRawPointer, _ right: UnsafeRawPointer, _ count: Int) -> Bool {
    timingsafe_bcmp(left, right, count) == 0
}
