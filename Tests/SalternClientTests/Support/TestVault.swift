import Cryptography
import Foundation
import SalternTesting
import Synchronization

@testable import SalternClient

/// A shared vault whose log is in memory: every member has its keys. Another account of the server has its items.
final class TestVault: Sendable {
    private struct State {
        var keys = [DataKey.random()]
        var readers: Set<[UInt8]> = []
        var hasEnded = false
    }

    let id = SharedVaultID.random()
    private let state = Mutex(State())
    private let folder: TemporaryDirectory
    private let token: Token
    /// Keeps the session.
    private let account: Vault

    init(_ userid: String, _ server: LiveServer) async throws {
        folder = try TemporaryDirectory(.memory)
        let settings = VaultSettings.forTests(
            folder: folder.path, try CurlTransport(server.address()), name: "items")
        account = try await Vault.signUp(settings, userid: userid, password: Password("password"))
        token = try await account.sessionToken()
    }

    /// Carries requests about the vault's items to the account that has them.
    func routes(_ inner: any HTTPTransport) -> any HTTPTransport {
        TestVaultRoutes(inner: inner, path: ItemOwner.vault(id).path, token: token)
    }

    /// Begins a generation of keys.
    func rotate() { state.withLock { $0.keys.append(.random()) } }

    /// Makes a member a reader.
    func lower(_ member: [UInt8]) { state.withLock { _ = $0.readers.insert(member) } }

    func end() { state.withLock { $0.hasEnded = true } }

    func sealing(_ member: [UInt8]) -> TestSealing {
        state.withLock { state in
            TestSealing(
                vault: id, member: member, keys: state.keys, readers: state.readers, head: Int64(state.keys.count))
        }
    }
}

private struct TestVaultRoutes: HTTPTransport {
    let inner: any HTTPTransport
    let path: String
    let token: Token

    var host: String? { inner.host }

    func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPReply {
        try await inner.send(carried(request))
    }

    func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPReplyStream {
        try await inner.stream(carried(request))
    }

    private func carried(_ request: HTTPRequest) -> HTTPRequest {
        guard request.target.hasPrefix(path) else { return request }
        var carried = request
        carried.target = request.target == path ? "/v1/account" : "/v1" + request.target.dropFirst(path.count)
        carried.token = token.text
        return carried
    }
}

/// The membership of one device in a ``TestVault``.
final class TestMemberships: Memberships {
    private let vault: TestVault
    private let member: [UInt8]
    private var known: TestSealing
    private(set) var endings = 0

    init(_ vault: TestVault, _ member: [UInt8]) {
        self.vault = vault
        self.member = member
        known = vault.sealing(member)
    }

    func refresh() -> VaultRefresh { VaultRefresh(present: [vault.id]) }

    func isKnown(_ id: SharedVaultID) -> Bool { id == vault.id }

    func sealing(of id: SharedVaultID) throws(VaultError) -> any ItemSealing {
        guard id == vault.id else { throw .notFound }
        return known
    }

    func learn(_ id: SharedVaultID) { known = vault.sealing(member) }

    func afterRound(_ id: SharedVaultID) {}

    func noteDisclosedKeys() {}

    func replaceAllKeys() {}

    func takeReport(of id: SharedVaultID) -> SyncReport? { nil }

    func noteEnd(of id: SharedVaultID) { endings += 1 }
}

/// Seals with the key of a generation: author (16) ‖ number of the head (8) ‖ content. There are no signatures.
struct TestSealing: ItemSealing {
    let vault: SharedVaultID
    let member: [UInt8]
    let keys: [DataKey]
    let readers: Set<[UInt8]>
    let head: Int64?

    private static let prefixCount = 24

    private struct Body {
        var author: [UInt8]
        var head: Int64
        var item: PlainItem
        var edit: SealedBox.Edit
    }

    var authorName: String? { member.first.map { "member \($0)" } }

    var canWrite: Bool { !readers.contains(member) }

    func open(_ content: ItemContent, _ id: ItemID) throws(SealedBox.Failure) -> OpenedItem {
        let body = try body(content, id)
        let name = "member \(body.author.first ?? 0)"
        return OpenedItem(
            item: body.item, edit: body.edit,
            author: ItemAuthor(member: body.author, name: name, isOwn: body.author == member))
    }

    func judge(
        _ version: ItemState, _ content: ItemContent, known: StoredItem?, heldSince: Int64?
    ) -> ItemVerdict {
        guard let body = try? body(content, version.id), let opened = try? open(content, version.id) else {
            return .unreadable
        }
        if body.head > head ?? 0 { return .putAside(PutAsideReason(rawValue: "unknownHead")) }
        if readers.contains(body.author) { return .putAside(PutAsideReason(rawValue: "notPermitted")) }
        return .accepted(opened)
    }

    func seal(
        _ item: PlainItem, _ id: ItemID, collection: String, _ edit: SealedBox.Edit
    ) throws(SealedBox.Failure) -> ItemContent {
        guard canWrite else { throw .unknownKey }
        return try seal(Body(author: member, head: head ?? 0, item: item, edit: edit), id, collection)
    }

    var canSeal: Bool { canWrite }

    func noteReplaced(_ id: ItemID) {}

    var stamp: [UInt8]? {
        keys.flatMap(\.id.bytes) + readers.sorted { $0.lexicographicallyPrecedes($1) }.joined() + member
    }

    func unsentForm(of content: ItemContent, _ id: ItemID, wasSent: Bool) -> UnsentForm {
        guard canSeal, let body = try? body(content, id) else { return .none }
        if !isOutdated(content) { return .present }
        if body.author != member {
            return renewed(content, id, from: self).map { .other($0, edit: body.edit.number) } ?? .none
        }
        let edit = wasSent ? next(body.edit, after: content, id) : body.edit
        return (try? seal(body.item, id, collection: content.collection, edit)).map { .other($0, edit: edit.number) }
            ?? .none
    }

    func isOutdated(_ content: ItemContent) -> Bool {
        guard let key = try? SealedBox.keyID(of: content.body.bytes) else { return false }
        return key != keys.last?.id
    }

    func renewed(_ content: ItemContent, _ id: ItemID, from old: any ItemSealing) -> ItemContent? {
        guard let old = old as? TestSealing, let body = try? old.body(content, id) else { return nil }
        return try? seal(body, id, content.collection)
    }

    func hash(of content: ItemContent, _ id: ItemID) -> [UInt8]? {
        guard let body = try? body(content, id) else { return nil }
        var hash = SHA256.Incremental()
        let title: [UInt8] = body.item.title.map { [1] + Array($0.utf8) } ?? [0]
        let parts: [[UInt8]] = [
            id.bytes, Array(content.collection.utf8), body.edit.number.bigEndianBytes, body.edit.previous, title,
            body.author, UInt64(body.head).bigEndianBytes,
        ]
        for part in parts {
            hash.update(UInt64(part.count).bigEndianBytes)
            hash.update(part)
        }
        hash.update(body.item.body)
        return hash.finalize().bytes
    }

    func isSameEdit(_ version: ItemContent, as known: ItemContent, _ id: ItemID) -> Bool {
        hash(of: version, id).map { $0 == hash(of: known, id) } ?? false
    }

    func isUnderUnknownKey(_ content: ItemContent) -> Bool {
        guard let key = try? SealedBox.keyID(of: content.body.bytes) else { return false }
        return !keys.contains { $0.id == key }
    }

    func chunkID(_ attachment: ItemID, _ index: Int, _ content: SecureBytes) -> ItemID {
        var hash = SHA256.Incremental()
        hash.update(vault.bytes + attachment.bytes + UInt64(index).bigEndianBytes)
        hash.update(content)
        return ItemID(bytes: hash.finalize().bytes.prefix(16)) ?? .random()
    }

    func sealChunk(_ content: SecureBytes, _ id: ItemID) throws(SealedBox.Failure) -> ItemContent {
        guard let key = keys.last else { throw .unknownKey }
        let sealed = try SealedBox.seal(content, .first, at: place(.chunk, id, Attachment.chunkCollection), with: key)
        return ItemContent(collection: Attachment.chunkCollection, format: SealedBox.format, body: sealed)
    }

    func openChunk(_ content: ItemContent, _ id: ItemID) throws(SealedBox.Failure) -> SecureBytes {
        try SealedBox.open(
            content.body.bytes, at: place(.chunk, id, Attachment.chunkCollection), with: key(content.body.bytes)
        ).content
    }

    func documentKey() -> SecureBytes { keys[0].bytes }

    // MARK: Bodies

    private func seal(
        _ body: Body, _ id: ItemID, _ collection: String
    ) throws(SealedBox.Failure) -> ItemContent {
        guard let key = keys.last else { throw .unknownKey }
        let prefix = body.author + UInt64(body.head).bigEndianBytes
        let bytes = SecureBytes(joining: [SecureBytes(copying: prefix), body.item.body])
        var title: [UInt8]?
        if let text = body.item.title {
            title = try SealedBox.seal(text.utf8, body.edit, at: place(.title, id, collection), with: key)
        }
        return ItemContent(
            collection: collection, format: SealedBox.format, title: title,
            body: try SealedBox.seal(bytes, body.edit, at: place(.body, id, collection), with: key))
    }

    private func body(_ content: ItemContent, _ id: ItemID) throws(SealedBox.Failure) -> Body {
        guard content.format == SealedBox.format else { throw .malformed }
        let sealed = content.body.bytes
        let opened = try SealedBox.open(sealed, at: place(.body, id, content.collection), with: key(sealed))
        guard opened.content.count >= Self.prefixCount else { throw .malformed }
        let prefix = opened.content.withUnsafeBytes { [UInt8]($0.prefix(Self.prefixCount)) }
        var title: String?
        if let bytes = content.title?.bytes {
            let text = try SealedBox.open(bytes, at: place(.title, id, content.collection), with: key(bytes))
            guard text.edit == opened.edit else { throw .notAuthentic }
            title = text.content.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        }
        let head = prefix.suffix(8).reduce(Int64(0)) { $0 << 8 | Int64($1) }
        return Body(
            author: Array(prefix.prefix(16)), head: head,
            item: PlainItem(
                title: title,
                body: opened.content.withUnsafeBytes {
                    SecureBytes(copying: UnsafeRawBufferPointer(rebasing: $0[Self.prefixCount...]))
                }),
            edit: opened.edit)
    }

    private func key(_ sealed: [UInt8]) throws(SealedBox.Failure) -> DataKey {
        let id = try SealedBox.keyID(of: sealed)
        guard let key = keys.first(where: { $0.id == id }) else { throw .unknownKey }
        return key
    }

    private func place(_ part: SealedBox.Part, _ id: ItemID, _ collection: String) -> SealedBox.Place {
        SealedBox.Place(part, account: AccountID(vault.uuid), item: id, collection: collection)
    }
}

extension Vault {
    /// Makes this device a member of a vault.
    func join(_ vault: TestVault, as member: UInt8) {
        // The session does not own them, and the test has no place for them.
        let memberships = TestMemberships(vault, [UInt8](repeating: member, count: 16))
        session.memberships = Unmanaged.passRetained(memberships).takeUnretainedValue()
        // Its tables are made now, and not by a reading at which a fault may be armed.
        _ = try? owners.parts(of: .vault(vault.id))
    }

    func sessionToken() throws(VaultError) -> Token { try open.token }

    func endings() -> Int { (session.memberships as? TestMemberships)?.endings ?? 0 }

    func forget(_ notice: Notice, of owner: ItemOwner) throws(VaultError) {
        let store = try owners.parts(of: owner).scope.store
        try stored { try store.forgetNotice(notice.number) }
    }
}

extension OwnedItems {
    /// Fetches later keys.
    func learn() async throws(VaultError) {
        try await vault.use(owner) { (parts) async throws(VaultError) in try await parts.scope.learn() }
    }
}

extension SyncReport {
    /// The report of one owner's items.
    func of(_ owner: ItemOwner) -> SyncReport {
        guard case .vault(let id) = owner else { return self }
        return vaults[id] ?? SyncReport()
    }
}
