import Foundation
import SalternClient
import SalternTesting
import Testing

/// A device whose process is killed at any system call by which its store writes, or at any moment, or whose disk fails
/// once, while requests and replies are lost or repeated: what `put` has returned for is there when it starts again, once,
/// and nothing else is.
@Suite struct KilledProcessTests {
    private static let rounds = PropertyTests.processes

    @Test func `what was written is there after any end of the process, and synced once`() async throws {
        try await LiveServer.with { server in
            let phone = try TemporaryDirectory()
            let laptop = try Device("laptop", server)
            let password = Password("password")
            try await signUp(phone, server, password)
            let other = try await Vault.logIn(laptop.settings, userid: "ada@example.org", password: password)
            let there = other.collection("notes", of: Note.self)
            var expected = Knowledge()
            var others: [ItemID: String] = [:]
            for round in 0..<Self.rounds {
                // Something to be fetched while the other process lives.
                let text = "laptop \(round)"
                others[try await there.put(Note(text: text))] = text
                try await other.sync()
                let life = try Life(round, phone, server)
                await #expect(processExitsWith: .signal(SIGKILL), "round \(round)") { [life = life as Life] in
                    try await life.live()
                }
                try await expected.learn(life, round)
            }
            try await compare(phone, server, other, expected.texts.merging(others) { $1 })
        }
    }

    private func signUp(_ phone: TemporaryDirectory, _ server: LiveServer, _ password: Password) async throws {
        let transport = try CurlTransport(server.address())
        let settings = VaultSettings.forTests(folder: phone.path, transport, name: "phone")
        _ = try await Vault.signUp(settings, userid: "ada@example.org", password: password)
    }

    private func compare(
        _ phone: TemporaryDirectory, _ server: LiveServer, _ other: Vault, _ texts: [ItemID: String]
    ) async throws {
        let transport = try CurlTransport(server.address())
        let settings = VaultSettings.forTests(folder: phone.path, transport, name: "phone")
        let vault = try #require(try await Vault.resume(settings))
        try await vault.sync()
        try await other.sync()
        for vault in [vault, other] {
            #expect(try await vault.collection("notes", of: Note.self).all().mapValues(\.text) == texts)
            #expect(try await vault.notices().isEmpty)
            #expect(try await vault.unsentCount() == 0)
        }
    }
}

/// What the phone's items are, as far as its processes have told.
private struct Knowledge {
    /// By id; what was deleted is not there.
    var texts: [ItemID: String] = [:]

    /// Reads what the process has noted, and which end its last step has taken.
    mutating func learn(_ life: Life, _ round: Int) async throws {
        var possible: [ItemID: Set<String?>] = [:]
        for step in life.steps() {
            let before: Set<String?> = possible[step.id] ?? [texts[step.id]]
            // A step that was begun may have happened; one that has returned has.
            possible[step.id] = step.isDone ? [step.text] : before.union([step.text])
        }
        let vault = try #require(try await Vault.resume(life.settings()))
        let all = try await vault.collection("notes", of: Note.self).all()
        for (id, known) in texts where possible[id] == nil {
            #expect(all[id]?.text == known, "round \(round)")
        }
        for (id, possible) in possible {
            let text = all[id]?.text
            #expect(possible.contains(text), "round \(round)")
            texts[id] = text
        }
    }
}

/// One process of a device, and how it ends.
private struct Life: Codable, Sendable {
    struct Step {
        let id: ItemID
        /// Nil for a deletion.
        let text: String?
        let isDone: Bool
    }

    let seed: UInt64
    let folder: String
    let journal: String
    let base: String
    let pin: String
    let anchor: [UInt8]
    /// What happens at which call; nil for a kill after so many microseconds.
    let fault: WriteFault?
    let moment: Int

    init(_ round: Int, _ folder: TemporaryDirectory, _ server: LiveServer) throws {
        let address = try server.address()
        var random = SeededGenerator(seed: UInt64(round))
        seed = random.next()
        self.folder = folder.path
        journal = folder.path + "/journal-\(round)"
        base = address.base
        pin = address.pins[0]
        anchor = address.anchor ?? []
        fault = round % 6 < 5 ? WriteFault.allCases[round % 6] : nil
        moment = fault == nil ? Int.random(in: 0...200_000, using: &random) : Int.random(in: 1...120, using: &random)
    }

    func settings() throws -> VaultSettings {
        let server = CurlTransport.Server(base: base, pins: [pin], anchor: anchor)
        return .forTests(folder: folder, try CurlTransport(server), name: "phone")
    }

    /// What was noted, in order.
    func steps() -> [Step] {
        let lines = (try? String(contentsOfFile: journal, encoding: .utf8)) ?? ""
        return lines.split(separator: "\n").compactMap { line in
            let words = line.split(separator: "\t")
            guard words.count == 3, let id = ItemID(words[1]) else { return nil }
            return Step(id: id, text: words[2] == "-" ? nil : String(words[2]), isDone: words[0] == "done")
        }
    }

    // MARK: In the process

    /// Works until it is killed.
    func live() async throws {
        guard FileManager.default.createFile(atPath: journal, contents: nil),
            let notes = FileHandle(forWritingAtPath: journal)
        else { return }
        if let fault {
            guard fault.happen(at: moment) != nil else { return }
        } else {
            let moment = UInt32(moment)
            Thread.detachNewThread {
                usleep(moment)
                kill(getpid(), SIGKILL)
            }
        }
        do { try await work(notes, LossyTransport(settings().transport)) } catch VaultError.store {
            // The disk failed while the store was opened.
        }
        kill(getpid(), SIGKILL)
    }

    private func work(_ journal: FileHandle, _ link: LossyTransport) async throws {
        var settings = try settings()
        settings.transport = link
        guard let vault = try await Vault.resume(settings) else { return }
        let notes = vault.collection("notes", of: Note.self)
        var random = SeededGenerator(seed: seed)
        let fates: [LossyTransport.Fate] = [.passes, .passes, .losesRequest, .losesReply, .repeats]
        for number in 0..<24 {
            // The laptop's items are its own.
            let mine = try await notes.all().filter { $0.value.text.hasPrefix("phone") }
            // Rather those of this process: several edits of one item before it is sent.
            let fresh = mine.filter { $0.value.text.hasPrefix("phone \(seed)") }
            let candidates = (fresh.isEmpty ? mine : fresh).keys.sorted()
            let text = "phone \(seed) \(number)"
            do {
                switch Int.random(in: 0..<8, using: &random) {
                case 0...1:
                    try await step(journal, .random(using: &random), text) { try await notes.put(Note(text: text), $0) }
                case 2...5:
                    guard let id = candidates.randomElement(using: &random) else { continue }
                    try await step(journal, id, text) { try await notes.put(Note(text: text), $0) }
                case 6:
                    guard let id = candidates.randomElement(using: &random) else { continue }
                    try await step(journal, id, nil) { try await notes.delete($0) }
                default:
                    let fate = fates.randomElement(using: &random) ?? .passes
                    link.setFate { fate }
                    try await vault.sync()
                }
            } catch VaultError.unavailable {
                // Offline.
            } catch VaultError.store {
                // The disk failed, or was full: the person goes on.
            }
        }
    }

    private func step(
        _ journal: FileHandle, _ id: ItemID, _ text: String?, _ body: (ItemID) async throws -> Void
    ) async throws {
        try journal.write(contentsOf: Data("begun\t\(id)\t\(text ?? "-")\n".utf8))
        try await body(id)
        try journal.write(contentsOf: Data("done\t\(id)\t\(text ?? "-")\n".utf8))
    }
}
