import Cryptography
import Testing

struct SecureRandomTests {
    @Test(arguments: [0, 1, 16, 32, 70_000])
    func `as many bytes come as were asked for`(_ count: Int) {
        #expect(SecureRandom.bytes(count).count == count)
        #expect(SecureRandom.secureBytes(count).count == count)
    }

    /// A byte that is never written stays at its old value; over 64 fills of random bytes it would have to be
    /// drawn 64 times, which happens once in 2^512.
    @Test func `every byte of a buffer is filled`() {
        var changed = [Bool](repeating: false, count: 100)
        for _ in 0..<64 {
            var buffer = [UInt8](repeating: 0, count: 100)
            buffer.withUnsafeMutableBytes { SecureRandom.fill($0) }
            for (position, byte) in buffer.enumerated() where byte != 0 { changed[position] = true }
        }
        #expect(changed.allSatisfy { $0 })
    }

    @Test func `no two draws are the same`() {
        #expect(Set((0..<1_000).map { _ in SecureRandom.bytes(16) }).count == 1_000)
    }
}
