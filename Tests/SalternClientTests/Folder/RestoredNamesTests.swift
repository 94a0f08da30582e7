import Testing

@testable import SalternClient

/// The server's database is restored: the version of a file that a person knows as the newest is where it was.
@Suite struct RestoredNamesTests {
    /// Ids decide names where nothing else does: of some seeds the old version has the lower one.
    private static let seeds: Range<UInt64> = 1..<9

    private func begin(_ seed: UInt64) async throws -> (person: MemoryPerson, phone: MemoryDevice, laptop: MemoryDevice)
    {
        let person = try await MemoryPerson(seed)
        for device in person.devices { try device.begin("files", foldsCase: false) }
        let phone = person.devices[0]
        #expect(phone.put("one", at: "thesis"))
        for number in 0..<40 { #expect(phone.put("\(number)", at: "file \(number)")) }
        try await run(person.devices)
        return (person, phone, person.devices[1])
    }

    /// All devices have "two", and the server "one" again.
    private func loseTwo(_ seed: UInt64) async throws -> (person: MemoryPerson, laptop: MemoryDevice) {
        let (person, phone, laptop) = try await begin(seed)
        let backup = person.server.backUp()
        #expect(phone.put("two", at: "thesis"))
        try await run(person.devices)
        person.server.restore(backup)
        return (person, laptop)
    }

    private func run(_ devices: [MemoryDevice], isAgreeing: Bool = false) async throws {
        for device in devices { _ = try await device.run(isAgreeing: isAgreeing) }
    }

    private func converge(_ devices: [MemoryDevice]) async throws {
        for _ in 0..<4 { try await run(devices, isAgreeing: true) }
    }

    private func theses(_ device: MemoryDevice) -> [String: String] {
        device.files().filter { $0.key.hasPrefix("thesis") }
    }

    /// Nothing but the newest and the version that the server went back to.
    private func expect(_ newest: String, _ person: MemoryPerson, _ seed: UInt64) {
        for device in person.devices {
            let files = theses(device)
            #expect(files["thesis"] == newest, "seed \(seed), \(device.name): \(files)")
            #expect(files.values.sorted() == ["one", newest].sorted(), "seed \(seed), \(device.name): \(files)")
        }
    }

    @Test(arguments: seeds)
    func `a version that the server has lost keeps its name`(seed: UInt64) async throws {
        let (person, _) = try await loseTwo(seed)
        try await converge(person.devices)
        expect("two", person, seed)
    }

    @Test(arguments: seeds)
    func `so does what was made of it before anybody knew`(seed: UInt64) async throws {
        let (person, laptop) = try await loseTwo(seed)
        #expect(laptop.put("three", at: "thesis"))
        try await converge(person.devices)
        expect("three", person, seed)
    }

    /// - Parameter isLast: Whether the others are done when the laptop's owner agrees.
    @Test(arguments: seeds, [false, true])
    func `so does what is made of it while deletions wait`(seed: UInt64, isLast: Bool) async throws {
        let (person, phone, laptop) = try await begin(seed)
        for number in 0..<30 { #expect(phone.drop("file \(number)")) }
        try await run([phone], isAgreeing: true)
        #expect(try await laptop.run(isAgreeing: false).isVaultHeld)
        let backup = person.server.backUp()
        #expect(laptop.put("two", at: "thesis"))
        try await run([laptop, phone])
        person.server.restore(backup)
        try await run([laptop])
        for text in ["three", "four", "five"] {
            #expect(laptop.put(text, at: "thesis"))
            #expect(try await laptop.run(isAgreeing: false).isVaultHeld)
        }
        if isLast { try await converge([phone, person.devices[2]]) }
        try await run([laptop], isAgreeing: true)
        #expect(laptop.put("six", at: "thesis"))
        try await converge(person.devices)
        expect("six", person, seed)
    }
}
