import Cryptography

@testable import VaultLog

/// A vault whose people are all in this process. The founder is "ada".
struct TestVault {
    struct Person {
        let id: MemberID
        var keys: MemberPrivateKeys
    }

    private(set) var log: MembershipLog
    private(set) var entries: [Entry]
    private(set) var people: [String: Person]
    /// The keys of the generations, from the first.
    private(set) var keys: [GenerationKey]
    private(set) var links: [String: InvitationSecrets] = [:]
    /// Seconds since 1970.
    var now: UInt64 = 1_800_000_000

    init() throws {
        let ada = Person(id: .random(), keys: try .generate())
        let key = GenerationKey.random()
        let founding = try EntryWriter.found(
            by: ada.id, named: name("ada"), ada.keys, key, at: time(now))
        log = try MembershipLog(founding: founding)
        entries = [founding]
        people = ["ada": ada]
        keys = [key]
    }

    /// Also has "ben", a manager, "cid", a writer, and "dan", a reader.
    static func withPeople() throws -> TestVault {
        var vault = try TestVault()
        for (person, role) in [("ben", Role.manager), ("cid", .writer), ("dan", .reader)] {
            try vault.invite(person, role)
            try vault.join(person, by: person)
        }
        return vault
    }

    func id(_ person: String) -> MemberID { people[person].known.id }

    func signer(_ person: String) throws -> MemberSigner {
        try MemberSigner(id(person), of: log.vault, people[person].known.keys)
    }

    func entry(_ payload: EntryPayload, by person: String) throws -> Entry {
        try EntryWriter.entry(payload, by: signer(person), after: log, at: time(now))
    }

    mutating func append(_ entry: Entry) throws {
        try log.append(entry)
        entries.append(entry)
    }

    mutating func append(_ payload: EntryPayload, by person: String) throws {
        try append(try entry(payload, by: person))
    }

    /// Returns the reason for which the log rejects an entry, or nil.
    func rejection(_ entry: Entry) -> EntryRejection? {
        var log = log
        do throws(EntryRejection) {
            try log.append(entry)
            return nil
        } catch {
            return error
        }
    }

    func rejection(_ payload: EntryPayload, by person: String) throws -> EntryRejection? {
        rejection(try entry(payload, by: person))
    }

    // MARK: Invitations

    func terms(
        _ secrets: InvitationSecrets, _ role: Role, uses: UInt16 = 1, life: UInt64 = 7 * 86_400
    ) -> InvitationTerms {
        InvitationTerms(
            id: secrets.id, admissionKey: secrets.admissionKey.publicKey, role: role, expiry: time(now + life),
            uses: uses, hasCode: false
        ).known
    }

    mutating func invite(
        _ link: String, _ role: Role, uses: UInt16 = 1, life: UInt64 = 7 * 86_400, by person: String = "ada"
    ) throws {
        let secrets = try InvitationSecrets(.random(), secret: SecureRandom.secureBytes(16), code: nil)
        add(link, secrets)
        try append(.invite(terms(secrets, role, uses: uses, life: life)), by: person)
    }

    func joining(_ link: String, _ keys: MemberPrivateKeys, as id: MemberID = .random()) throws -> Entry {
        try EntryWriter.join(
            links[link].known, as: id, named: name("new"), keys, NameKey(key), after: log, at: time(now))
    }

    mutating func join(_ person: String, by link: String) throws {
        let joiner = Person(id: .random(), keys: try .generate())
        try append(try joining(link, joiner.keys, as: joiner.id))
        people[person] = joiner
    }

    // MARK: Generations

    var key: GenerationKey { keys[keys.count - 1] }

    func next(_ key: GenerationKey) -> Generation { Generation(key, number: log.currentGeneration.number.next.known) }

    mutating func rotate(by person: String) throws {
        let key = GenerationKey.random(for: log)
        try append(.rotate(next(key)), by: person)
        keys.append(key)
    }

    func removal(_ removed: [String], _ key: GenerationKey) -> EntryPayload {
        EntryPayload.removing(Set(removed.map(id)), next(key)).known
    }

    mutating func remove(_ removed: [String], by person: String) throws {
        let key = GenerationKey.random(for: log)
        try append(removal(removed, key), by: person)
        keys.append(key)
    }

    mutating func rekey(_ person: String) throws {
        let keys = try MemberPrivateKeys.generate()
        try append(try EntryWriter.rekey(to: keys, by: signer(person), after: log, at: time(now)))
        people[person]?.keys = keys
    }

    // MARK: Parts of appended entries

    mutating func add(_ person: String, _ id: MemberID, _ keys: MemberPrivateKeys) {
        people[person] = Person(id: id, keys: keys)
    }

    mutating func add(_ key: GenerationKey) { keys.append(key) }

    mutating func add(_ link: String, _ secrets: InvitationSecrets) { links[link] = secrets }

    mutating func replace(_ person: String, _ keys: MemberPrivateKeys) { people[person]?.keys = keys }

    // MARK: Edits

    func statement(
        _ body: String, title: String? = nil, item: VaultItemID, collection: String = "notes", number: UInt64 = 1,
        previous: EditHash = .none
    ) -> EditStatement {
        EditStatement(
            item: item, collection: collection, number: EditNumber(number).known, previous: previous,
            title: title.map { secret($0) }, body: secret(body)
        ).known
    }

    func edit(_ body: String, _ statement: EditStatement, by person: String, at head: Head? = nil) throws -> SignedBody
    {
        try SignedBody(secret(body), statement, by: signer(person), head ?? log.head)
    }
}

func secret(_ text: String) -> SecureBytes { SecureBytes(copying: text.utf8) }

func time(_ seconds: UInt64) -> EntryTime { EntryTime(seconds: seconds).known }

func name(_ text: String) -> MemberName { MemberName(text).known }

/// 16 bytes with one value.
func id<Subject>(_ byte: UInt8) -> Identifier<Subject> { Identifier(repeatElement(byte, count: 16)).known }

extension Optional {
    /// The value, which a test always has.
    var known: Wrapped {
        guard let self else { preconditionFailure("the test has the value") }
        return self
    }
}
