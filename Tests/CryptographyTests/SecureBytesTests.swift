import Synchronization
import Testing

@testable import Cryptography

struct SecureBytesTests {
    @Test func `the memory is zeroed before it is given back`() {
        let seen = Mutex<[UInt8]?>(nil)
        do {
            let secret = SecureBytes(
                count: 64,
                release: { memory in
                    seen.withLock { $0 = [UInt8](memory) }
                    memory.deallocate()
                },
                initializingWith: { $0.initializeMemory(as: UInt8.self, repeating: 0xA5) })
            let copy = secret
            #expect(copy.withUnsafeBytes { $0.allSatisfy { $0 == 0xA5 } })
        }
        #expect(seen.withLock { $0 } == [UInt8](repeating: 0, count: 64))
    }

    @Test func `the memory is zeroed when filling it fails half-way`() {
        struct Stopped: Error {}
        let seen = Mutex<[UInt8]?>(nil)
        #expect(throws: Stopped.self) {
            _ = try SecureBytes(
                count: 8,
                release: { memory in
                    seen.withLock { $0 = [UInt8](memory) }
                    memory.deallocate()
                },
                initializingWith: { memory throws(Stopped) in
                    memory[0] = 0xA5
                    throw Stopped()
                })
        }
        #expect(seen.withLock { $0 } == [UInt8](repeating: 0, count: 8))
    }

    @Test func `contents are kept and start as zeros`() {
        let bytes = [UInt8](1...100)
        let secret = SecureBytes(copying: bytes)
        #expect(secret.count == 100)
        #expect(!secret.isEmpty)
        #expect(secret.withUnsafeBytes { [UInt8]($0) } == bytes)
        #expect(SecureBytes(count: 3) { _ in }.withUnsafeBytes { [UInt8]($0) } == [0, 0, 0])
        #expect(SecureBytes(copying: [UInt8]()).isEmpty)
    }

    @Test func `equality looks at every byte and at the length`() {
        let bytes = [UInt8](1...40)
        let secret = SecureBytes(copying: bytes)
        #expect(secret == SecureBytes(copying: bytes))
        #expect(secret != SecureBytes(copying: bytes.dropLast()))
        for position in bytes.indices {
            var other = bytes
            other[position] ^= 1
            #expect(secret != SecureBytes(copying: other))
            #expect(!constantTimeEquals(bytes, other))
        }
        #expect(SecureBytes(copying: [UInt8]()) == SecureBytes(copying: [UInt8]()))
        #expect(constantTimeEquals([UInt8](), "".utf8))
    }

    @Test func `a secret is not printed`() {
        struct Holder {
            let key: SecureBytes
        }
        let secret = SecureBytes(copying: "TOP-SECRET".utf8)
        let holder = Holder(key: secret)
        let texts = [
            "\(secret)", String(describing: secret), String(reflecting: secret), dumped(secret), "\(holder)",
            String(reflecting: holder), dumped(holder), dumped([secret]), "\(Optional(secret) as Any)",
        ]
        for text in texts {
            #expect(text.contains("redacted"))
            #expect(!text.contains("TOP"))
            // Its first bytes as numbers. (One of them alone can stand in an address.)
            #expect(!text.contains("84, 79"))
            #expect(!text.contains("0x"))
        }
        #expect(Mirror(reflecting: secret).children.isEmpty)
    }

    @Test func `a secret cannot be encoded`() {
        let secret: Any = SecureBytes(copying: [1, 2, 3])
        #expect(!(secret is any Encodable))
    }
}
