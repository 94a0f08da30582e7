import Cryptography

@testable import VaultLog

/// All that the vectors are made of: constants, and a log with an entry of each kind.
struct VaultVectors {
    typealias Sections = [String: [String: String]]

    static let vaultName = name("Family")
    static let code = "zoo legal winner thank year wave"

    /// The private keys of a person: 32 equal bytes each.
    static func keys(_ signing: UInt8, _ agreement: UInt8) throws -> MemberPrivateKeys {
        func key(_ byte: UInt8) throws -> P256.PrivateKey {
            try P256.PrivateKey(number: SecureBytes(copying: [UInt8](repeating: byte, count: 32)))
        }
        return try MemberPrivateKeys(signing: key(signing), agreement: key(agreement))
    }

    static func generationKey(_ number: UInt8) -> GenerationKey {
        GenerationKey(SecureBytes(copying: [UInt8](repeating: 0xA0 + number, count: 32))).known
    }

    static func nonce(_ first: UInt8) -> [UInt8] { Array(first..<first + 12) }

    static let plainID: InvitationID = id(0x51)
    static let codedID: InvitationID = id(0x52)
    static let plainSecret = SecureBytes(copying: Array(0..<16) as [UInt8])
    static let codedSecret = SecureBytes(copying: Array(16..<32) as [UInt8])

    static func plain() throws -> InvitationSecrets { try InvitationSecrets(plainID, secret: plainSecret, code: nil) }
    static func coded() throws -> InvitationSecrets {
        try InvitationSecrets(codedID, secret: codedSecret, code: InvitationCode(code))
    }

    // MARK: Constants

    /// The sections that follow from constants alone.
    static func fixed() throws -> Sections {
        [
            "vaultInvitation": try invitation(plain(), plainSecret, nil),
            "vaultInvitationWithCode": try invitation(coded(), codedSecret, code),
            "vaultGeneration": try generation(),
        ]
    }

    private static func invitation(
        _ secrets: InvitationSecrets, _ secret: SecureBytes, _ code: String?
    ) throws -> [String: String] {
        let content = try InvitationContent(
            secrets, vaultName, name("Ben"), generationKey(1), nonces: (nonce(0), nonce(12)))
        var section = [
            "id": Hex.encode(secrets.id.bytes), "secret": Hex.encode(secret), "token": Hex.encode(secrets.token),
            "tokenHash": Hex.encode(secrets.tokenHash), "previewKey": Hex.encode(secrets.previewKey),
            "keyKey": Hex.encode(secrets.generationKeyKey),
            "admissionPrivateKey": Hex.encode(secrets.admissionKey.bytes.slice(65..<97)),
            "admissionPublicKey": Hex.encode(secrets.admissionKey.publicKey.bytes), "vaultName": vaultName.text,
            "inviterName": "Ben", "generationKey": Hex.encode(generationKey(1).bytes),
            "preview": Hex.encode(content.preview), "sealedKey": Hex.encode(content.sealedKey),
        ]
        section["code"] = code
        return section
    }

    private static func generation() throws -> [String: String] {
        let key = generationKey(2)
        let number = GenerationNumber(2).known
        let vault: VaultID = id(0x21)
        let member: MemberID = id(0x22)
        let recipient = try keys(0x31, 0x32)
        let ephemeral = try keys(0x33, 0x34).agreement
        let agreementKey = recipient.agreement
        return [
            "key": Hex.encode(key.bytes), "number": "2", "vault": Hex.encode(vault.bytes),
            "member": Hex.encode(member.bytes), "keyId": Hex.encode(key.id.bytes),
            "commitment": Hex.encode(key.commitment(number)), "nameKey": Hex.encode(NameKey(key).bytes),
            "chunkIdKey": Hex.encode(key.chunkIDKey), "name": "Ada Łovelace",
            "sealedName": Hex.encode(
                try SealedName(name("Ada Łovelace"), of: member, NameKey(key), nonce: nonce(24)).bytes),
            "previousKey": Hex.encode(generationKey(1).bytes),
            "sealedPreviousKey": Hex.encode(
                try key.sealPrevious(generationKey(1), of: vault, number: number, nonce: nonce(36))),
            "agreementPrivateKey": Hex.encode(agreementKey.bytes.slice(65..<97)),
            "ephemeralPrivateKey": Hex.encode(ephemeral.bytes.slice(65..<97)),
            "box": Hex.encode(
                try GenerationBox.seal(
                    key, number, for: member, agreementKey.publicKey, of: vault, ephemeral: ephemeral)),
        ]
    }

    // MARK: A log

    /// The state while the log is made.
    private(set) var log: MembershipLog
    private(set) var entries: [Entry]
    private var signers: [String: MemberSigner] = [:]
    private var people: [String: MemberID] = [:]
    private var seconds: UInt64 = 1_800_000_000

    private init() throws {
        let ada: MemberID = id(0x41)
        let keys = try Self.keys(0x11, 0x12)
        let founding = try EntryWriter.found(
            by: ada, named: name("Ada"), keys, Self.generationKey(1), at: VaultLogTests.time(1_800_000_000))
        log = try MembershipLog(founding: founding)
        entries = [founding]
        people["ada"] = ada
        signers["ada"] = try MemberSigner(ada, of: log.vault, keys)
    }

    private mutating func time() -> EntryTime {
        seconds += 60
        return VaultLogTests.time(seconds)
    }

    private mutating func append(_ entry: Entry) throws {
        try log.append(entry)
        entries.append(entry)
    }

    private mutating func append(_ payload: EntryPayload, by person: String) throws {
        try append(try EntryWriter.entry(payload, by: signers[person].known, after: log, at: time()))
    }

    private mutating func join(_ person: String, _ byte: UInt8, _ secrets: InvitationSecrets) throws {
        let member: MemberID = id(byte)
        let keys = try Self.keys(byte - 0x20, byte + 0x20)
        try append(
            try EntryWriter.join(
                secrets, as: member, named: name(person.prefix(1).uppercased() + person.dropFirst()), keys,
                NameKey(Self.generationKey(1)), after: log,
                at: time()))
        people[person] = member
        signers[person] = try MemberSigner(member, of: log.vault, keys)
    }

    /// Makes the sections with signatures, which differ each time.
    static func signed() throws -> Sections {
        var made = try VaultVectors()
        var rejected: [String: String] = [:]
        var edits: [String: String] = [:]
        try made.begin()
        let danEdit = try made.edit("dan", "Buy salt.", title: "Shopping")
        try made.collectEarly(&rejected)
        try made.append(.role(made.people["dan"].known, .reader), by: "ada")
        let listed = made.statement("Buy salt.", title: "Shopping").mark(made.log.vault, danEdit)
        let list = SealList([item: listed])
        let unlisted = try made.edit("dan", "Sell salt.", at: danEdit.head)
        edits["awaitsSeal"] = Hex.encode(unlisted.bytes)
        try made.append(.seal(Seal(of: danEdit.author, list)), by: "ben")
        edits["notPermitted"] = Hex.encode(try made.edit("dan", "Buy salt.").bytes)
        try made.finish()
        edits["accepted"] = Hex.encode(try made.edit("ben", "Buy salt.", title: "Shopping").bytes)
        edits["listed"] = Hex.encode(danEdit.bytes)
        edits["notListed"] = Hex.encode(unlisted.bytes)
        edits["wrongSignature"] = Hex.encode(
            try SignedBody(
                secret("Sell salt."), made.statement("Buy salt.", title: "Shopping"), by: made.signers["ben"].known,
                made.log.head
            ).bytes)
        let fork = Head(number: made.log.head.number, hash: made.entries[3].hash)
        edits["fork"] = Hex.encode(try made.edit("ben", "Buy salt.", at: fork).bytes)
        let unknown = Head(number: EntryNumber(100).known, hash: made.entries[3].hash)
        edits["unknownHead"] = Hex.encode(try made.edit("ben", "Buy salt.", at: unknown).bytes)
        edits["unknownAuthor"] = Hex.encode(try made.edit("dan", "Buy salt.", at: made.log.head).bytes)
        try made.collectLate(&rejected)
        return [
            "vaultLog": Dictionary(
                uniqueKeysWithValues: made.entries.map { (key($0), Hex.encode($0.bytes)) }),
            "vaultLogState": try made.state(), "vaultRejected": rejected, "vaultEdits": edits,
            "vaultEdit": made.editInputs(list), "vaultStatements": try made.statements(),
        ]
    }

    private static func key(_ entry: Entry) -> String {
        let number = String(entry.number.value)
        return (number.count == 1 ? "0" : "") + number + " \(entry.payload.kind)"
    }

    private func terms(_ secrets: InvitationSecrets, _ role: Role, uses: UInt16, hasCode: Bool) -> InvitationTerms {
        InvitationTerms(
            id: secrets.id, admissionKey: secrets.admissionKey.publicKey, role: role,
            expiry: VaultLogTests.time(1_800_604_800), uses: uses, hasCode: hasCode
        ).known
    }

    private mutating func begin() throws {
        try append(.invite(terms(Self.plain(), .manager, uses: 1, hasCode: false)), by: "ada")
        try join("ben", 0x42, Self.plain())
        try append(.invite(terms(Self.coded(), .writer, uses: 3, hasCode: true)), by: "ben")
        try join("cid", 0x43, Self.coded())
        try join("dan", 0x44, Self.coded())
    }

    private mutating func finish() throws {
        try append(.offer(people["ben"].known), by: "ada")
        try append(.accept(log.head.number), by: "ben")
        try append(.leave, by: "ada")
        try append(.rotate(Generation(Self.generationKey(2), number: GenerationNumber(2).known)), by: "ben")
        let keys = try Self.keys(0x71, 0x72)
        try append(try EntryWriter.rekey(to: keys, by: signers["cid"].known, after: log, at: time()))
        signers["cid"] = try MemberSigner(people["cid"].known, of: log.vault, keys)
        let generation = Generation(Self.generationKey(3), number: GenerationNumber(3).known)
        try append(.remove(generation, [people["dan"].known]), by: "ben")
        let last = try InvitationSecrets(id(0x53), secret: SecureBytes(copying: Array(32..<48) as [UInt8]), code: nil)
        try append(.invite(terms(last, .reader, uses: 1, hasCode: false)), by: "ben")
        try append(.revoke(last.id), by: "ben")
    }

    // MARK: Rejected entries

    private mutating func reject(_ payload: EntryPayload, by person: String, _ rejected: inout [String: String]) throws
    {
        try reject(try EntryWriter.entry(payload, by: signers[person].known, after: log, at: time()), &rejected)
    }

    /// Adds an entry under its reason.
    private func reject(_ entry: Entry, _ rejected: inout [String: String]) throws {
        var log = log
        do throws(EntryRejection) {
            try log.append(entry)
        } catch {
            rejected["\(error.rawValue): \(entry.payload.kind)"] = Hex.encode(entry.bytes)
            return
        }
        preconditionFailure("\(entry.payload.kind) is valid")
    }

    /// After the joins.
    private mutating func collectEarly(_ rejected: inout [String: String]) throws {
        let key = Generation(Self.generationKey(4), number: GenerationNumber(2).known)
        try reject(.role(people["dan"].known, .reader), by: "cid", &rejected)
        try reject(.role(people["ada"].known, .reader), by: "ben", &rejected)
        try reject(.role(people["ben"].known, .manager), by: "ada", &rejected)
        try reject(.role(id(0x4F), .reader), by: "ada", &rejected)
        try reject(.remove(key, [people["ada"].known]), by: "ben", &rejected)
        try reject(.remove(key, [people["ben"].known]), by: "ben", &rejected)
        try reject(.leave, by: "ada", &rejected)
        try reject(.rotate(Generation(Self.generationKey(1), number: GenerationNumber(2).known)), by: "ada", &rejected)
        try reject(.seal(Seal(of: people["dan"].known, SealList([:]))), by: "ada", &rejected)
        try reject(.accept(.first), by: "ben", &rejected)
        try reject(.offer(people["cid"].known), by: "ada", &rejected)
        try reject(.offer(people["ben"].known), by: "ben", &rejected)
        try reject(.invite(terms(Self.plain(), .reader, uses: 1, hasCode: false)), by: "ada", &rejected)
        let late = VaultLogTests.time(1_800_604_801)
        let joiner = try Self.keys(0x75, 0x76)
        let nameKey = NameKey(Self.generationKey(1))
        try reject(
            try EntryWriter.join(
                Self.coded(), as: id(0x45), named: name("Eve"), joiner, nameKey, after: log, at: late), &rejected)
        let used = try EntryWriter.join(
            Self.plain(), as: id(0x45), named: name("Eve"), joiner, nameKey, after: log, at: time())
        try reject(used, &rejected)
        let guessed = try InvitationSecrets(Self.codedID, secret: Self.codedSecret, code: nil)
        try reject(
            try EntryWriter.join(
                guessed, as: id(0x45), named: name("Eve"), joiner, nameKey, after: log, at: time()), &rejected)
        try reject(
            try EntryWriter.join(
                Self.coded(), as: id(0x45), named: name("Eve"), Self.keys(0x23, 0x76), nameKey, after: log, at: time()),
            &rejected)
        let forger = try MemberSigner(people["ada"].known, of: log.vault, joiner)
        try reject(try EntryWriter.entry(.leave, by: forger, after: log, at: time()), &rejected)
    }

    /// After the last entry.
    private mutating func collectLate(_ rejected: inout [String: String]) throws {
        try reject(.leave, by: "dan", &rejected)
        let thief = try MemberSigner(people["cid"].known, of: log.vault, Self.keys(0x23, 0x63))
        try reject(try EntryWriter.entry(.leave, by: thief, after: log, at: time()), &rejected)
        rejected["wrongNumber: leave"] = rejected["ownerProtected: leave"]
        try reject(.revoke(Self.plainID), by: "ben", &rejected)
        let ben = signers["ben"].known
        var header = Entry.Header(
            vault: log.vault, number: log.head.number.next.known, previous: entries[2].hash, time: time(),
            author: ben.member
        )
        try reject(try EntryWriter.sign(header, .revoke(Self.plainID), with: ben.key), &rejected)
        header.vault = id(0x21)
        try reject(try EntryWriter.sign(header, .revoke(Self.plainID), with: ben.key), &rejected)
    }

    // MARK: Results

    private static let item: VaultItemID = id(0x61)

    private func statement(_ body: String, title: String? = nil) -> EditStatement {
        EditStatement(
            item: Self.item, collection: "notes", number: .first, previous: .none, title: title.map { secret($0) },
            body: secret(body)
        ).known
    }

    private func edit(_ person: String, _ body: String, title: String? = nil, at head: Head? = nil) throws -> SignedBody
    {
        try SignedBody(secret(body), statement(body, title: title), by: signers[person].known, head ?? log.head)
    }

    private func editInputs(_ list: SealList) -> [String: String] {
        let head = entries[5].head
        let statement = statement("Buy salt.", title: "Shopping")
        return [
            "item": Hex.encode(Self.item.bytes), "collection": "notes", "number": "1", "title": "Shopping",
            "body": "Buy salt.", "author": Hex.encode(people["dan"].known.bytes), "head": Hex.encode(head.bytes),
            "statement": Hex.encode(statement.bytes(log.vault, people["dan"].known, head)),
            "hash": Hex.encode(statement.hash(log.vault, people["dan"].known, head).bytes),
            "list": Hex.encode(list.bytes),
        ]
    }

    private func state() throws -> [String: String] {
        var state = [
            "vault": log.vault.text, "head": Hex.encode(log.head.bytes),
            "headWords": log.head.words(of: log.vault).joined(separator: " "), "owner": Hex.encode(log.owner.bytes),
            "generation": String(log.currentGeneration.number.value), "rotationDue": String(log.isRotationDue),
            "unsealed": log.unsealed.map { Hex.encode($0.bytes) }.joined(separator: " "),
            "joinWords": entries[2].hash.words.joined(separator: " "),
            "link": InvitationLink(
                server: "https://api.example.org", log.invitations[Self.plainID].known, secret: Self.plainSecret
            ).known.text,
        ]
        for (person, id) in people {
            let member = log.members[id].known
            state["role of \(person)"] = member.role.map { "\($0)" } ?? "none"
            state["name of \(person)"] = member.name.open(of: id, NameKey(Self.generationKey(1)))?.text
        }
        return state
    }

    private func statements() throws -> [String: String] {
        let account: MemberAccountID = id(0x77)
        let head = log.head
        return [
            "member": Hex.encode(people["cid"].known.bytes), "head": Hex.encode(head.bytes),
            "account": Hex.encode(account.bytes),
            "seen": Hex.encode(try MemberStatement(.seen, by: signers["cid"].known, head).signature.bytes),
            "claim": Hex.encode(
                try MemberStatement(.claim(account), by: signers["cid"].known, head).signature.bytes),
        ]
    }
}
