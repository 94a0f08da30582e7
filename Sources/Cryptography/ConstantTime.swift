/// Compares two byte strings in time that depends on their lengths only.
///
/// Returns false at once for different lengths: the length of a secret is not secret.
public func constantTimeEquals(_ left: some ByteSource, _ right: some ByteSource) -> Bool {
    left.withContiguousBytes { left in
        right.withContiguousBytes { right in
            guard left.count == right.count else { return false }
            // An empty buffer may have no base address, and the C function must not receive a null pointer.
            guard let leftBase = left.baseAddress, let rightBase = right.baseAddress else { return true }
            return equalsInConstantTime(leftBase, rightBase, left.count)
        }
    }
}
