import Cryptography
import SalternClient
import Testing

struct KeychainDeviceKeyStoreTests {
    @Test func `a key is kept, replaced and removed, and each vault has its own`() throws {
        let store = KeychainDeviceKeyStore(service: "org.example.notes", account: "one")
        let other = KeychainDeviceKeyStore(service: "org.example.notes", account: "two")
        #expect(try store.load() == nil)
        try store.remove()
        for _ in 0..<2 {
            let key = SecureRandom.secureBytes(32)
            try store.save(key)
            #expect(try store.load() == key)
        }
        #expect(try other.load() == nil)
        try store.remove()
        #expect(try store.load() == nil)
    }

    @Test func `bytes of another length are no key`() throws {
        let store = KeychainDeviceKeyStore(service: "org.example.notes", account: "damaged")
        try store.save(SecureRandom.secureBytes(31))
        #expect(try store.load() == nil)
    }
}
