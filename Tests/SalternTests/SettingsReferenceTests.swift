import CommandLineKit
import Foundation
import HTTPServer
import Postgres
import SalternServer
import SalternTesting
import Testing
import TransportSecurity

@testable import saltern

/// The tables of settings in docs/admin/configure.md against the program.
@Suite struct SettingsReferenceTests {
    private static func handbook() throws -> String { try document("docs/admin/configure.md") }

    private static func document(_ path: String) throws -> String {
        try String(
            contentsOf: URL(filePath: #filePath).appending(path: "../../../" + path).standardized, encoding: .utf8)
    }

    @Test func `the tables of the handbook are those of the program`() throws {
        let sections = try Self.handbook().components(separatedBy: "\n## ").map { $0.components(separatedBy: "\n") }
        let documented = sections.flatMap { lines in
            lines.filter { $0.hasPrefix("| `SALTERN_") }.enumerated().map {
                ($0.offset == 0 ? lines[0] : "", $0.element)
            }
        }
        let expected = Setting.allCases.map { setting in
            (
                Setting.headings.first { $0.value == setting }?.key ?? "",
                "| `\(setting)` | " + setting.cells[1...3].joined(separator: " | ") + " |"
            )
        }
        #expect(documented.map(\.0) == expected.map(\.0))
        #expect(documented.map(\.1) == expected.map(\.1))
    }

    @Test func `a server reads every setting, except those of commands, and also from a file`() throws {
        let directory = try TemporaryDirectory()
        let environment = try Self.required(directory)
        for setting in Setting.allCases {
            let variables = environment.filter { $0.key != "\(setting)" }
                .merging([setting.fileVariable: directory.missing]) { $1 }
            #expect(
                Self.outcome(variables).contains { $0.hasPrefix("\(setting.fileVariable): cannot read the file") }
                    != Self.ofCommands.contains(setting), "\(setting)")
        }
    }

    private static let ofCommands: Set<Setting> = [.ownerDatabaseURL, .superuserDatabaseURL, .actor]

    @Test func `Docker Compose passes every setting to the containers, except those of the image`() throws {
        let compose = try Self.document("docker-compose.yml").components(separatedBy: "x-settings:")[1]
            .components(separatedBy: "\nservices:")[0]
        let passed = Set(
            compose.matches(of: #/\n  (SALTERN_[A-Z_]+):/#).map { String($0.1).replacing("_URL_FILE", with: "_URL") })
        let ofImage: Set<Setting> = [.listen, .tlsDirectory, .masterKeyFile, .handoverSocket]
        #expect(
            passed == Set(Setting.allCases.filter { !Self.ofCommands.union(ofImage).contains($0) }.map(\.description)))
    }

    @Test func `the handbook says how many connections to the database a node needs`() throws {
        let directory = try TemporaryDirectory()
        var environment = try Self.required(directory)
        let formula =
            /\(`SALTERN_READ_CONNECTIONS` \+ `SALTERN_COMMIT_CONNECTIONS` \+ (\d+)\) \+ (\d+)\): by default (\d+)/
        let text = try Self.handbook().replacing("\n", with: " ")
        let said = try #require(text.firstMatch(of: formula))
        let (more, others, byDefault) = (Int(said.1) ?? 0, Int(said.2) ?? 0, Int(said.3) ?? 0)
        environment["SALTERN_LOOPS"] = "3"
        #expect(try ServeConfiguration(environment, coreCount: 1).databaseConnectionCount == 3 * byDefault + others)
        environment["SALTERN_READ_CONNECTIONS"] = "7"
        environment["SALTERN_COMMIT_CONNECTIONS"] = "5"
        let needed = try ServeConfiguration(environment, coreCount: 1).databaseConnectionCount
        #expect(needed == 3 * (7 + 5 + more) + others)
    }

    @Test func `a server's database sessions use no sequential scans`() throws {
        let directory = try TemporaryDirectory()
        let configuration = try ServeConfiguration(Self.required(directory), coreCount: 1)
        #expect(!configuration.database.allowsSequentialScans)
    }

    /// What a server needs, and nothing else.
    private static func required(_ directory: TemporaryDirectory) throws -> [String: String] {
        let tls = directory.path + "/tls"
        _ = try CertificateDirectory(path: tls).create(hosts: [Host("localhost")])
        let key = directory.path + "/master.key"
        _ = try MasterKeyFile(path: key).create()
        return [
            "SALTERN_DATABASE_URL": "postgresql://localhost/saltern", "SALTERN_SALT_PREFIX": "org.example.notes:",
            "SALTERN_TLS_DIRECTORY": tls, "SALTERN_MASTER_KEY_FILE": key,
        ]
    }

    /// All that the settings decide, or all that is wrong with them.
    private static func outcome(_ environment: [String: String]) -> [String] {
        do throws(CommandFailure) {
            let read = try ServeConfiguration(environment, coreCount: 3)
            return [
                "\(read.service)", "\(read.failover)", "\(read.listen)", "\(read.metricsListen as Any)",
                "\(read.handoverSocket as Any)", "\(read.tls.directory)", "\(read.tls.minimumVersion)", "\(read.http)",
                "\(read.loopCount)", "\(read.allowsUnsafeDatabase)", "\(read.drainTimeout)", "\(read.logLevel)",
                "\(read.database.pooling) \(read.database.readConnections) \(read.database.commitConnections)",
            ]
        } catch {
            return error.messages
        }
    }

    @Test func `every default can be written as the handbook writes it`() throws {
        let directory = try TemporaryDirectory()
        let whole = try Self.required(directory)
        var count = 0
        for setting in Setting.allCases {
            // Others are in words.
            guard let value = setting.cells[1].prefixMatch(of: #/`([^`]+)`/#)?.1 else { continue }
            var environment = whole
            environment["\(setting)"] = nil
            let expected = Self.outcome(environment)
            environment["\(setting)"] = String(value)
            #expect(Self.outcome(environment) == expected, "\(setting)=\(value)")
            count += 1
        }
        #expect(count > 30)
    }

    /// A value that is refused, and what both the message and the handbook have to say.
    private static let refused: [(name: String, value: String, rule: [String])] =
        [
            ("DATABASE_POOLING", "x", ["session", "transaction"]), ("SALT_PREFIX", "a b", ["1 to 255 bytes"]),
            ("FAILOVER", "x", ["asynchronous", "synchronous"]), ("LISTEN", "8443", ["HOST:PORT"]),
            ("TLS_MINIMUM_VERSION", "1.1", ["1.3", "1.2"]),
            ("SERVICE_NAME", String(repeating: "x", count: 129), ["1 to 128 bytes"]),
            ("REGISTRATION", "x", ["open", "invite", "closed"]),
            ("KDF_MINIMUM_ITERATIONS", "9999", ["10000 to 10000000"]),
            ("KDF_DEFAULT_ITERATIONS", "599999", ["to 10000000"]), ("SESSION_IDLE_TIMEOUT", "60s", ["61s", "3650d"]),
            ("SESSION_LIFETIME", "29d", ["to", "3650d"]), ("TOMBSTONE_RETENTION", "23h", ["1d", "3650d"]),
            ("EVENT_RETENTION", "3651d", ["1d", "3650d"]), ("ANONYMOUS_SHARES_LIMIT", "100001", ["0 to 100000"]),
            ("PASSKEYS_RP_ID", "Example.org", ["off", "a domain name in lower case"]),
            ("APPLE_APP_IDS", "x", ["none", "separated by commas"]),
            ("ANDROID_APPS", "x", ["none", "separated by commas"]),
            ("APP_STORE_ID", "x", ["none", "number"]), ("RATE_LIMITS", "x", ["on", "off", "figures"]),
            ("TRUSTED_PROXIES", "x", ["none", "addresses and blocks"]),
            ("PROXY_PROTOCOL", "x", ["none", "addresses and blocks"]),
            ("LOOPS", "257", ["1 to 256"]),
            ("READ_CONNECTIONS", "65", ["1 to 64"]), ("COMMIT_CONNECTIONS", "0", ["1 to 64"]),
            ("MAX_CONNECTIONS", "0", ["1 to 1000000"]), ("MAX_CONNECTIONS_PER_ADDRESS", "0", ["1 to 1000000"]),
            ("MAX_CONCURRENT_REQUESTS", "0", ["1 to 100000"]), ("DRAIN_TIMEOUT", "61m", ["0s", "1h"]),
            ("KEEP_ALIVE", "0s", ["1s", "1h"]), ("STRICT_TRANSPORT_SECURITY", "on", ["off", "1s", "3650d"]),
            ("HANDOVER_SOCKET", "/" + String(repeating: "x", count: 99), ["off", "1 to 99 bytes"]),
            ("TOKEN_ISSUER", "x", ["none", "https://"]), ("TOKEN_AUDIENCES", "X", ["none", "separated by commas"]),
            ("TOKEN_LIFETIME", "61m", ["1m", "1h"]), ("ALLOWED_ORIGINS", "x", ["none", "separated by commas"]),
            ("METRICS_LISTEN", "x", ["off", "HOST:PORT"]), ("LOG_LEVEL", "x", ["debug", "info", "warning", "error"]),
        ]
        + ["SHOW_VERSION", "OPAQUE_FORMAT", "ANONYMOUS_SHARES", "ALLOW_UNSAFE_DATABASE", "CORE_DUMPS"].map {
            ($0, "yes", ["on", "off"])
        }
    /// Their values are secrets, or name files whose trouble is told instead.
    private static let others = [
        "DATABASE_URL", "OWNER_DATABASE_URL", "SUPERUSER_DATABASE_URL", "MASTER_KEY_FILE", "TLS_DIRECTORY",
        "SIGNING_KEY_FILE", "PASSKEYS_ORIGINS", "DESTINATION_CA", "ACTOR",
    ]

    @Test func `a refusal names the variable, what it must be and what it was, as the handbook does`() throws {
        let directory = try TemporaryDirectory()
        let environment = try Self.required(directory)
        let settings = Dictionary(uniqueKeysWithValues: Setting.allCases.map { ("\($0)", $0) })
        #expect(Set(settings.keys) == Set((Self.refused.map(\.name) + Self.others).map { "SALTERN_" + $0 }))
        for (name, value, rule) in Self.refused {
            let variable = "SALTERN_" + name
            let messages = Self.outcome(environment.merging([variable: value]) { $1 })
            let message = try #require(messages.count == 1 ? messages.first : nil, "\(variable): \(messages)")
            #expect(message.hasPrefix(variable + " must be "), "\(message)")
            #expect(message.hasSuffix(", not \"\(value.prefix(100))\""), "\(message)")
            let setting = try #require(settings[variable])
            let row = (setting.cells[1] + setting.cells[2]).replacing(",", with: "")
            for words in rule {
                #expect(message.contains(words), "\(words) in: \(message)")
                #expect(row.contains(words), "\(words) in the row of \(variable)")
            }
        }
    }

    @Test func `an empty value is refused, whatever it is of`() throws {
        let directory = try TemporaryDirectory()
        let environment = try Self.required(directory)
        let others = ["TLS_DIRECTORY", "OWNER_DATABASE_URL", "SUPERUSER_DATABASE_URL"]
        for name in Self.refused.map(\.name) + others where name != "SALT_PREFIX" {
            let variable = "SALTERN_" + name
            let messages = Self.outcome(environment.merging([variable: ""]) { $1 })
            #expect(messages.first == "\(variable) is empty: leave it out, or give it a value", "\(messages)")
        }
        for name in ["DATABASE_URL", "SALT_PREFIX", "MASTER_KEY_FILE"] {
            let messages = Self.outcome(environment.merging(["SALTERN_" + name: ""]) { $1 })
            #expect(messages.first?.hasPrefix("SALTERN_\(name) is missing: ") == true, "\(messages)")
        }
    }
}
