package import Cryptography

extension SecureBytes {
    /// Joins pieces in their order.
    package init(joining pieces: [SecureBytes]) {
        self.init(count: pieces.reduce(0) { $0 + $1.count }) { buffer in
            var offset = 0
            for piece in pieces {
                piece.withUnsafeBytes {
                    UnsafeMutableRawBufferPointer(rebasing: buffer[offset...].prefix($0.count)).copyMemory(from: $0)
                }
                offset += piece.count
            }
        }
    }
}
