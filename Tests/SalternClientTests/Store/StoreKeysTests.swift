import SalternTesting
import Testing

@testable import SalternClient

struct StoreKeysTests {
    private let folder: TemporaryDirectory
    private let store: Store
    private let keys: StoreKeys

    init() throws {
        folder = try TemporaryDirectory()
        store = try Store(path: folder.path + "/store.sqlite")
        keys = StoreKeys(store)
    }

    /// A keyring after a rotation that replaces the current key.
    private func rotated(_ keyring: Keyring) -> Keyring {
        var next = keyring
        next.dataKeys = [.random()]
        return next
    }

    @Test func `the keys of the last keyring are recorded, the current one last`() throws {
        #expect(try keys.ids().isEmpty)
        var keyring = Keyring.new()
        keyring.dataKeys.append(.random())
        try keys.note(keyring)
        #expect(try keys.ids() == keyring.dataKeys.map(\.id))
        let next = rotated(keyring)
        try keys.note(next)
        #expect(try keys.ids() == [next.currentKey.id])
    }

    @Test func `keys that a rotation replaced are retired, kept ones are not`() throws {
        let first = Keyring.new()
        let second = rotated(first)
        let third = rotated(second)
        try keys.retireKeys(of: first, for: second)
        try keys.retireKeys(of: second, for: third)
        try keys.retireKeys(of: third, for: third)
        #expect(try keys.isRetired(first.currentKey))
        #expect(try keys.isRetired(second.currentKey))
        #expect(try !keys.isRetired(third.currentKey))
        #expect(try !keys.isRetired(Keyring.new().currentKey))
    }

    @Test func `a new key lists all items again while unread content waits`() throws {
        let keyring = Keyring.new()
        try keys.note(keyring)
        try store.set(.cursor, [1])
        try store.set(.unread, [1])
        try keys.note(keyring)
        #expect(try keys.hasUnread() && store.fact(.cursor) == [1], "no key is new")
        try keys.note(rotated(keyring))
        #expect(try !keys.hasUnread() && store.fact(.cursor) == nil)
        try store.set(.cursor, [1])
        try keys.note(rotated(keyring))
        #expect(try store.fact(.cursor) == [1], "no content is unread")
    }
}
