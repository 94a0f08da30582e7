import Cryptography
import HTTPCore
import Postgres
import SalternTesting
import Synchronization
import Testing
import VaultLog

/// A vault as its founder's device has it: the log, and the key of the present generation.
struct VaultScene {
    let app: TestApplication
    let founder: Sharer
    private(set) var log: MembershipLog
    private(set) var key: GenerationKey
    /// The entries behind the first one.
    private(set) var noted: [Entry] = []

    /// An account with its keys in one vault.
    struct Sharer: Sendable {
        let account: TestAccount
        let member = MemberID.random()
        let keys: MemberPrivateKeys

        init(_ account: TestAccount) throws {
            self.account = account
            keys = try .generate()
        }

        var client: TestClient { account.client }
    }

    /// The path of the vault.
    var path: String { "/v1/vaults/\(log.vault.text)" }

    private static let name = MemberName("Somebody")

    /// Founds a vault of a new account.
    init(_ app: TestApplication) async throws {
        try await self.init(app, try await app.register())
    }

    init(_ app: TestApplication, _ account: TestAccount) async throws {
        self.app = app
        founder = try Sharer(account)
        key = GenerationKey.random()
        let entry = try EntryWriter.found(
            by: founder.member, named: try #require(Self.name), founder.keys, key, at: try Self.time(app))
        log = try MembershipLog(founding: entry)
        let reply = try await account.client.post("/v1/vaults", Self.body(entry))
        try #require(reply.status == 201, "\(reply)")
    }

    /// The fields of a change of items by a member with the whole log.
    func fields(_ precondition: [String: String] = [:]) -> [String: String] {
        precondition.merging(["Vault-Head": String(log.head.number.value)]) { $1 }
    }

    static func time(_ app: TestApplication, after seconds: Int = 0) throws -> EntryTime {
        try #require(EntryTime(seconds: UInt64(app.clock.now.unixMicroseconds / 1_000_000 + Int64(seconds))))
    }

    static func body(_ entry: Entry, _ others: [(name: String, value: JSONValue)] = []) -> JSONValue {
        .object(JSONObject([(name: "entry", value: .string(Base64.encodeToString(entry.bytes)))] + others))
    }

    /// The body of a statement about a head.
    static func body(
        _ head: Head, _ signature: VaultSignature, _ others: [(name: String, value: JSONValue)] = []
    ) -> JSONValue {
        .object(
            JSONObject(
                members(of: head) + [
                    (name: "signature", value: .string(Base64.encodeToString(signature.bytes)))
                ] + others))
    }

    static func members(of head: Head) -> [(name: String, value: JSONValue)] {
        [
            (name: "number", value: .integer(Int64(head.number.value))),
            (name: "hash", value: .string(Base64.encodeToString(head.hash.bytes))),
        ]
    }

    static func member(of list: SealList) -> [(name: String, value: JSONValue)] {
        [(name: "list", value: .string(Base64.encodeToString(list.bytes)))]
    }

    /// Makes an entry for the log's present end.
    func entry(_ payload: EntryPayload, by sharer: Sharer? = nil, after seconds: Int = 0) throws -> Entry {
        let author = sharer ?? founder
        return try EntryWriter.entry(
            payload, by: try MemberSigner(author.member, of: log.vault, author.keys), after: log,
            at: try Self.time(app, after: seconds))
    }

    /// Appends an entry that the server has accepted.
    mutating func note(_ entry: Entry) throws {
        try log.append(entry)
        noted.append(entry)
    }

    /// Sends an entry, and appends it if the server accepts it.
    @discardableResult
    mutating func append(
        _ payload: EntryPayload, by sharer: Sharer? = nil, _ others: [(name: String, value: JSONValue)] = []
    ) async throws -> TestResponse {
        let entry = try entry(payload, by: sharer)
        let reply = try await (sharer ?? founder).client.post("\(path)/log", Self.body(entry, others))
        if reply.status == 200 { try note(entry) }
        return reply
    }

    /// Makes an invitation.
    func makeInvitation(
        as role: Role, uses: UInt16 = 1, id: InvitationID = .random(), by sharer: Sharer? = nil
    ) throws -> (secrets: InvitationSecrets, entry: Entry, body: JSONValue) {
        let secrets = try InvitationSecrets(
            id, secret: SecureRandom.secureBytes(InvitationSecrets.secretByteCount), code: nil)
        let terms = try #require(
            InvitationTerms(
                id: secrets.id, admissionKey: secrets.admissionKey.publicKey, role: role,
                expiry: try Self.time(app, after: 86_400), uses: uses, hasCode: false))
        let entry = try entry(.invite(terms), by: sharer)
        let name = try #require(Self.name)
        let content = try InvitationContent(secrets, vaultName: name, inviter: name, key)
        let body = Self.body(
            entry,
            [
                (name: "tokenHash", value: .string(Base64.encodeToString(secrets.tokenHash.bytes))),
                (name: "preview", value: .string(Base64.encodeToString(content.preview))),
                (name: "keyBox", value: .string(Base64.encodeToString(content.sealedKey))),
            ])
        return (secrets, entry, body)
    }

    /// Opens an invitation.
    mutating func invite(
        as role: Role, uses: UInt16 = 1, by sharer: Sharer? = nil
    ) async throws -> InvitationSecrets {
        let (secrets, entry, body) = try makeInvitation(as: role, uses: uses, by: sharer)
        let reply = try await (sharer ?? founder).client.post("\(path)/invitations", body)
        try #require(reply.status == 201, "\(reply)")
        try note(entry)
        return secrets
    }

    /// Appends an invitation to the log without the server.
    mutating func noteInvitation(as role: Role, uses: UInt16) throws -> InvitationSecrets {
        let (secrets, entry, _) = try makeInvitation(as: role, uses: uses)
        try note(entry)
        return secrets
    }

    func joining(
        _ secrets: InvitationSecrets, _ sharer: Sharer, after seconds: Int = 0
    ) throws -> (entry: Entry, body: JSONValue) {
        let entry = try EntryWriter.join(
            secrets, as: sharer.member, named: try #require(Self.name), sharer.keys, NameKey(key), after: log,
            at: try Self.time(app, after: seconds))
        let token = secrets.token.withUnsafeBytes { Base64.encodeToString([UInt8]($0)) }
        return (entry, Self.body(entry, [(name: "token", value: .string(token))]))
    }

    /// Adds a new account.
    mutating func join(as role: Role) async throws -> Sharer {
        try await join(as: role, with: try await app.register())
    }

    /// Adds an account.
    mutating func join(
        as role: Role, with account: TestAccount, by inviter: Sharer? = nil
    ) async throws -> Sharer {
        let secrets = try await invite(as: role, by: inviter)
        let sharer = try Sharer(account)
        let (entry, body) = try joining(secrets, sharer)
        let reply = try await sharer.client.post("/v1/invitations/\(secrets.id.text)/acceptance", body)
        try #require(reply.status == 201, "\(reply)")
        try note(entry)
        return sharer
    }

    /// The members of a request that begins a generation.
    mutating func newKeys(without removed: [MemberID] = []) throws -> (Generation, [(name: String, value: JSONValue)]) {
        let next = GenerationKey.random(for: log)
        let number = try #require(log.currentGeneration.number.next)
        let previous = try next.sealPrevious(key, of: log.vault, number: number)
        let boxes: [JSONValue] = try log.presentMembers.filter { !removed.contains($0.id) }.map { member in
            let box = try GenerationBox.seal(next, number, for: member.id, member.keys.agreement, of: log.vault)
            return ["member": .string(member.id.text), "box": .string(Base64.encodeToString(box))]
        }
        key = next
        return (
            Generation(next, number: number),
            [
                (name: "boxes", value: .array(boxes)),
                (name: "previousKey", value: .string(Base64.encodeToString(previous))),
            ]
        )
    }

    /// An item with random bytes of the form of `saltern-1`, under a key.
    func item(_ key: GenerationKey? = nil, bytes: Int = 64, collection: String = "notes") -> JSONValue {
        let sealed = [1] + (key ?? self.key).id.bytes + SecureRandom.bytes(12 + bytes + 16)
        return [
            "format": "saltern-1", "collection": .string(collection),
            "body": .string(Base64.encodeToString(sealed)),
        ]
    }
}

/// A value that several tasks of a test change.
final class SharedValue<Value>: Sendable {
    private let value: Mutex<Value>

    init(_ value: consuming sending Value) { self.value = Mutex(value) }

    func withLock<Result, Failure>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result { try value.withLock(body) }
}
