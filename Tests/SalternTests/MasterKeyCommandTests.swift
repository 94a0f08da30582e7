import CommandLineKit
import Foundation
import HTTPCore
import SalternServer
import SalternTesting
import Testing

@testable import saltern

extension CommandLineTests {
    @Test func `a folder that takes the place of the master key's folder is not written to`() throws {
        let directory = try TemporaryDirectory()
        let (folder, moved, other) = (directory.path + "/keys", directory.path + "/moved", directory.path + "/other")
        let files = FileManager.default
        for path in [folder, other] { try files.createDirectory(atPath: path, withIntermediateDirectories: false) }
        let first = try MasterKeyFile(path: folder + "/master.key").create()
        let precious = try MasterKeyFile(path: other + "/master.key").create()
        let changed = try MasterKeyFile(path: folder + "/master.key").change { key throws(MasterKeyError) in
            try? files.moveItem(atPath: folder, toPath: moved)
            try? files.createSymbolicLink(atPath: folder, withDestinationPath: other)
            return try key.rotated()
        }
        #expect(changed.ids.count == 2)
        #expect(try MasterKeyFile(path: moved + "/master.key").read().ids == changed.ids)
        #expect(changed.ids.contains(first.ids[0]))
        #expect(try MasterKeyFile(path: other + "/master.key").read().ids == precious.ids)
    }

    @Test func `older master keys go when nothing needs them, and the second factor of a person when an admin says so`()
        async throws
    {
        let directory = try TemporaryDirectory()
        let file = MasterKeyFile(path: directory.path + "/master.key")
        var configuration = TestApplication.configuration
        configuration.masterKey = try file.create()
        try await TestApplication.with(configuration) { app in
            let environment = [
                "SALTERN_DATABASE_URL": app.database.administratorURL, "SALTERN_MASTER_KEY_FILE": file.path,
            ]
            let ada = try await app.register()
            _ = try await ada.client.post("/v1/account/totp", ["currentPasswordKey": .string(ada.passwordKey)])
            #expect(try await run("master-key", "rotate", environment: environment).status == 0)

            let refused = try await run("master-key", "prune", environment: environment)
            #expect(refused.status == 1)
            #expect(refused.error.contains("2 secrets need the key \(configuration.masterKey.ids[0])"))
            #expect(try file.read().ids.count == 2)

            let resealed = try await run("master-key", "reseal", environment: environment)
            #expect(resealed.status == 0, "\(resealed)")
            #expect(resealed.output == "sealed 2 secrets with the key \(try file.read().ids[0])\n")
            let pruned = try await run("master-key", "prune", environment: environment)
            #expect(pruned.status == 0, "\(pruned)")
            #expect(pruned.output == "active  \(try file.read().ids[0])\n")

            // A key that nothing opens with.
            let other = MasterKeyFile(path: directory.path + "/other.key")
            _ = try other.create()
            let unreadable = try await run("master-key", "reseal", "--file", other.path, environment: environment)
            #expect(unreadable.status == 1)
            #expect(unreadable.error.contains("the secret of account \(ada.id)"))

            let words = ["account", "remove-second-factor", ada.userid, "--actor", "grace"]
            let removed = try await run(words, environment: environment)
            #expect(
                removed.output
                    == """
                    removed the one-time codes and their recovery codes
                    account \(ada.id) has no second factor any more

                    """)
            let again = try await run(words, environment: environment)
            #expect(again.status == 1)
            #expect(again.error.contains("has no second factor"))
            let audit = try await run("audit", "list", environment: environment)
            #expect(audit.output.contains("second_factor_removed"))
            #expect(audit.output.contains("grace"))
            let events = try await ada.client.get("/v1/account/events")
            #expect(events.text.contains("totp_disabled"))
        }
    }

    @Test func `an older master key stays in the file when a secret is sealed with it beside its removal`() async throws
    {
        let directory = try TemporaryDirectory()
        let file = MasterKeyFile(path: directory.path + "/master.key")
        let older = try file.create().ids[0]
        let keys = try file.change { key throws(MasterKeyError) in try key.rotated() }.ids
        var counts: [[MasterKeyID: Int64]] = [[:], [older: 1]]
        await #expect(throws: CommandFailure.self) {
            try await PruneMasterKeys.prune(file) { counts.removeFirst() }
        }
        #expect(counts.isEmpty)
        #expect(try file.read().ids == keys)
        #expect(try await PruneMasterKeys.prune(file) { [:] }.ids == [keys[0]])
        #expect(try file.read().ids == [keys[0]])
    }
}
