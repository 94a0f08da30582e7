import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// A device that is killed at any system call by which its store writes or its folder is changed, so between any two steps
/// of a round, or at any moment: nothing that a person wrote is lost, and nothing is there twice.
@Suite struct FolderKilledTests {
    private static let rounds = PropertyTests.processes

    @Test func `a round that was killed is gone on with`() async throws {
        try await LiveServer.with { server in
            let laptop = try await FolderDevice("laptop", server, isFirst: true)
            let phone = try TemporaryDirectory()
            let files = try TemporaryDirectory()
            _ = try await Vault.logIn(
                .forTests(folder: phone.path, CurlTransport(server.address()), name: "phone"),
                userid: "ada@example.org", password: Password("password"))
            var deleted: Set<String> = []
            for round in 0..<Self.rounds {
                // Two of each kind in either direction, then a rename, a change and a deletion of what was there.
                for number in 0..<2 {
                    try Data("phone \(round) \(number)".utf8).write(
                        to: URL(filePath: files.path + "/phone-\(round)-\(number)"))
                    try laptop.write("laptop \(round) \(number)", to: "folder/laptop-\(round)-\(number)")
                }
                if round > 0 {
                    try? laptop.rename("folder/laptop-\(round - 1)-0", "other/laptop-\(round - 1)-0")
                    try laptop.write("laptop \(round - 1) 1, again", to: "folder/laptop-\(round - 1)-1")
                    // Unless the phone was killed before it was there.
                    let arrived = "phone-\(round - 1)-0"
                    if (try? laptop.remove(arrived)) != nil { deleted.insert(arrived) }
                }
                _ = try await laptop.agreeing.run()
                let life = try FolderLife(round, phone.path, files.path, server)
                await #expect(processExitsWith: .signal(SIGKILL), "round \(round)") { [life = life as FolderLife] in
                    try await life.live()
                }
            }
            let vault = try #require(
                try await Vault.resume(.forTests(folder: phone.path, CurlTransport(server.address()), name: "phone")))
            let (_, agreeing) = FolderDevice.syncs(vault, files.path, "phone")
            for _ in 0..<4 {
                _ = try await agreeing.run()
                _ = try await laptop.agreeing.run()
            }
            var expected: [String: String] = [:]
            for round in 0..<Self.rounds {
                let isLast = round == Self.rounds - 1
                expected["\(isLast ? "folder" : "other")/laptop-\(round)-0"] = "laptop \(round) 0"
                expected["folder/laptop-\(round)-1"] = "laptop \(round) 1" + (isLast ? "" : ", again")
                expected["phone-\(round)-1"] = "phone \(round) 1"
                expected["phone-\(round)-0"] = "phone \(round) 0"
            }
            for name in deleted { expected[name] = nil }
            #expect(laptop.files() == expected)
            for (name, text) in expected {
                let data = try? Data(contentsOf: URL(filePath: files.path + "/" + name))
                #expect(data == Data(text.utf8), "\(name)")
            }
            let here = try FileManager.default.subpathsOfDirectory(atPath: files.path).filter {
                !$0.hasPrefix(".saltern") && !["folder", "other"].contains($0)
            }
            #expect(here.count == expected.count)
        }
    }
}

/// One process of a device, and how it ends.
private struct FolderLife: Codable, Sendable {
    let folder: String
    let files: String
    let base: String
    let pin: String
    let anchor: [UInt8]
    /// What happens at which call; nil for a kill after so many microseconds.
    let fault: WriteFault?
    let moment: Int

    init(_ round: Int, _ folder: String, _ files: String, _ server: LiveServer) throws {
        let address = try server.address()
        var random = SeededGenerator(seed: UInt64(round))
        self.folder = folder
        self.files = files
        base = address.base
        pin = address.pins[0]
        anchor = address.anchor ?? []
        let faults: [WriteFault] = [.killBefore, .killWithin, .killAfter]
        fault = round % 4 < 3 ? faults[round % 4] : nil
        moment = fault == nil ? Int.random(in: 0...300_000, using: &random) : Int.random(in: 1...160, using: &random)
    }

    /// Works until it is killed.
    func live() async throws {
        var system: any FolderSystem = DiskFolders()
        if let fault {
            guard let life = fault.happen(at: moment) else { return }
            system = MortalFolders(life: life)
        } else {
            let moment = UInt32(moment)
            Thread.detachNewThread {
                usleep(moment)
                kill(getpid(), SIGKILL)
            }
        }
        let server = CurlTransport.Server(base: base, pins: [pin], anchor: anchor)
        let settings = VaultSettings.forTests(folder: folder, try CurlTransport(server), name: "phone")
        if let vault = try await Vault.resume(settings) {
            _ = try await FolderDevice.syncs(vault, files, "phone", system).1.run()
        }
        kill(getpid(), SIGKILL)
    }
}
