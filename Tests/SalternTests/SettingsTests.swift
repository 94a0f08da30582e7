import CommandLineKit
import Foundation
import HTTPCore
import SalternServer
import SalternTesting
import Testing
import TransportSecurity

@testable import saltern

@Suite struct SettingsTests {
    @Test func `a value may stand in a file, whose line end does not count`() throws {
        let directory = try TemporaryDirectory()
        let file = directory.path + "/secret"
        try Data("s3cret\n".utf8).write(to: URL(filePath: file))
        var settings = Settings(["SALTERN_DATABASE_URL_FILE": file])
        #expect(settings.text(.databaseURL) == "s3cret")
        #expect(settings.problems == [])
    }

    @Test func `an admin's name and the permission of core dumps may stand in files, too`() throws {
        let directory = try TemporaryDirectory()
        let (name, permission) = (directory.path + "/name", directory.path + "/permission")
        try Data("ada\n".utf8).write(to: URL(filePath: name))
        try Data("on\n".utf8).write(to: URL(filePath: permission))
        var arguments = try Arguments([], OptionNames(of: TellRestored.self))
        let actor = try AdminActor(&arguments)
        #expect(try actor.actor(Console(environment: ["SALTERN_ACTOR_FILE": name])).name == "ada")
        #expect(throws: CommandFailure.self) { try actor.actor(Console(environment: ["SALTERN_ACTOR": " ada"])) }
        var settings = Settings(["SALTERN_CORE_DUMPS_FILE": permission])
        let isAllowed = settings.allowsDumps()
        #expect(isAllowed && settings.problems == [])
    }

    @Test func `authorities of receivers are certificates that can be read, and no value is quoted`() throws {
        let directory = try TemporaryDirectory()
        let certificates = CertificateDirectory(path: directory.path + "/tls")
        _ = try certificates.create(hosts: [Host("localhost")])
        var settings = Settings(["SALTERN_DESTINATION_CA_FILE": certificates.certificateFile])
        #expect(settings.destinationAuthorities()?.starts(with: "-----BEGIN CERTIFICATE-----".utf8) == true)
        #expect(settings.problems == [])
        let key = try String(contentsOfFile: certificates.keyFile, encoding: .utf8)
            .trimmingCharacters(in: .newlines)
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"
        for text in ["certificate", key, broken] {
            var settings = Settings(["SALTERN_DESTINATION_CA": text])
            #expect(settings.destinationAuthorities() == nil)
            #expect(settings.problems.count == 1)
            let problem = try #require(settings.problems.first)
            #expect(problem.hasPrefix("SALTERN_DESTINATION_CA must be none, or certificates in PEM"))
            #expect(!problem.contains("-----BEGIN"))
        }
    }

    @Test func `a variable and its file together are refused`() {
        var settings = Settings(["SALTERN_SERVICE_NAME": "a", "SALTERN_SERVICE_NAME_FILE": "/etc/hostname"])
        #expect(settings.text(.serviceName) == nil)
        #expect(settings.problems == ["SALTERN_SERVICE_NAME and SALTERN_SERVICE_NAME_FILE are both set; use one"])
    }

    @Test func `a file that cannot be read is told by its name, with the reason`() throws {
        let directory = try TemporaryDirectory()
        let place = directory.path
        #expect(mkfifo(place + "/pipe", 0o600) == 0)
        try Data([0xFF, 0xFE]).write(to: URL(filePath: place + "/binary"))
        try Data(count: 1_048_577).write(to: URL(filePath: place + "/long"))
        try Data("\n".utf8).write(to: URL(filePath: place + "/nothing"))
        try Data("one\0two".utf8).write(to: URL(filePath: place + "/zero"))
        try Data("\u{FEFF}one".utf8).write(to: URL(filePath: place + "/mark"))
        for (path, reason) in [
            (directory.missing, "cannot read the file \(directory.missing): No such file or directory"),
            ("/proc/1/mem/x", "cannot read the file /proc/1/mem/x: Not a directory"),
            (place, "cannot read the file \(place): it is a directory"),
            (place + "/pipe", "cannot read the file \(place)/pipe: it is not a regular file"),
            (place + "/binary", "cannot read the file \(place)/binary: it is not UTF-8"),
            (place + "/long", "cannot read the file \(place)/long: it is longer than 1048576 bytes"),
            (place + "/zero", "cannot read the file \(place)/zero: it contains a NUL byte"),
            (place + "/mark", "cannot read the file \(place)/mark: it begins with a byte order mark"),
            (place + "/nothing", "the file \(place)/nothing is empty"),
        ] {
            var settings = Settings(["SALTERN_SERVICE_NAME_FILE": path])
            #expect(settings.text(.serviceName) == nil)
            #expect(settings.problems == ["SALTERN_SERVICE_NAME_FILE: \(reason)"])
        }
        var settings = Settings(["SALTERN_SERVICE_NAME_FILE": ""])
        #expect(settings.requiredText(.serviceName, "what is missing") == "")
        #expect(settings.problems == ["SALTERN_SERVICE_NAME_FILE is empty: leave it out, or name a file"])
    }

    @Test(arguments: [" ", " x", "x\t", "\u{A0}x", "x \n"])
    func `white space at either end, which nobody sees, is refused without being quoted`(text: String) {
        var settings = Settings(["SALTERN_SERVICE_NAME": text])
        #expect(settings.text(.serviceName) == nil)
        #expect(settings.problems == ["SALTERN_SERVICE_NAME begins or ends with white space"])
    }

    @Test(arguments: ["", " ", "\n"])
    func `a connection string that is blank is missing`(text: String) {
        var settings = Settings(["SALTERN_DATABASE_URL": text])
        #expect(settings.serverDatabase() == nil)
        #expect(
            settings.problems == [
                "SALTERN_DATABASE_URL is missing: the address of PostgreSQL, as a URL or in keyword form"
            ])
    }

    @Test func `a word that says that there is nothing is written as the handbook has it`() {
        var settings = Settings(["SALTERN_HANDOVER_SOCKET": "OFF", "SALTERN_LOG_LEVEL": "INFO"])
        #expect(settings.text(.handoverSocket, orNothing: "off") == nil)
        _ = settings.choice(.logLevel, ["info": true], default: true)
        #expect(
            settings.problems == [
                "SALTERN_HANDOVER_SOCKET is \"OFF\" and must be written off",
                "SALTERN_LOG_LEVEL must be one of info, not \"INFO\"",
            ])
    }

    @Test(arguments: ["127.0.0.1:+8443", "127.0.0.1:08443", "127.0.0.1: 8443", "local host:8443"])
    func `a port has digits alone, and a host no white space`(text: String) {
        var settings = Settings(["SALTERN_LISTEN": text])
        #expect(settings.address(.listen) == nil && settings.problems.count == 1)
    }

    @Test(arguments: [("90s", 90), ("15m", 900), ("12h", 43_200), ("30d", 2_592_000), ("0s", 0)])
    func `times have a unit`(text: String, seconds: Int) {
        var settings = Settings(["SALTERN_DRAIN_TIMEOUT": text])
        let value = settings.duration(.drainTimeout, in: .zero ... .seconds(9_999_999), default: .seconds(1))
        #expect(value == .seconds(seconds))
        #expect(settings.problems == [])
    }

    @Test(arguments: [
        "30", "d", "-1d", "+90s", "090s", "90S", " 90s", "1.5h", "1w", "30 d", "99999999999999999999s",
        "9223372036854775807d", "9999d",
    ])
    func `anything else is no time, and is not replaced by the default in silence`(text: String) {
        var settings = Settings(["SALTERN_DRAIN_TIMEOUT": text])
        _ = settings.duration(.drainTimeout, in: .zero ... .seconds(3_600), default: .seconds(1))
        #expect(settings.problems.count == 1)
        #expect(
            settings.problems.first
                == "SALTERN_DRAIN_TIMEOUT must be a time such as 90s, 15m, 12h or 30d, from 0s to 1h, not \"\(text)\"")
    }

    @Test(arguments: ["x", "0", "65", "1.0", " 1", "1 ", "+4", "04"])
    func `a number outside of its range is refused`(text: String) {
        var settings = Settings(["SALTERN_READ_CONNECTIONS": text])
        _ = settings.integer(.readConnections, in: 1...64, default: 4)
        #expect(settings.problems == ["SALTERN_READ_CONNECTIONS must be a whole number from 1 to 64, not \"\(text)\""])
    }

    @Test(arguments: ["127.0.0.1", "127.0.0.1,10.0.0.0/8", "127.0.0.1, ::1, 2001:db8::/32"])
    func `trusted proxies are addresses and blocks`(text: String) {
        var settings = Settings(["SALTERN_TRUSTED_PROXIES": text])
        #expect(settings.trustedProxies().contains(IPAddress("127.0.0.1") ?? .unspecified))
        #expect(settings.problems == [])
    }

    @Test(arguments: [
        "", ",", "127.0.0.1,", "127.0.0.1;10.0.0.1", "proxy", "10.0.0.1/8", "10.0.0.0/08", "0.0.0.0/0",
        "127.0.0.1 10.0.0.1",
    ])
    func `a slip among them trusts nobody`(text: String) {
        var settings = Settings(["SALTERN_TRUSTED_PROXIES": text])
        _ = settings.trustedProxies()
        #expect(settings.problems.count == 1)
    }

    @Test func `rate limits are figures, on or off`() {
        var settings = Settings(["SALTERN_RATE_LIMITS": "login=1/1"])
        #expect(settings.rateLimits().limits[.login]?.burst == 1)
        settings = Settings([:])
        #expect(settings.rateLimits() == .standard)
        for text in ["+1/1", "01/1", "1/01", "1/.5", "1/1.", "1/1e3"] {
            settings = Settings(["SALTERN_RATE_LIMITS": "login=" + text])
            _ = settings.rateLimits()
            #expect(settings.problems.count == 1, "\(text)")
        }
        settings = Settings(["SALTERN_RATE_LIMITS": "none"])
        _ = settings.rateLimits()
        #expect(settings.problems.first?.hasPrefix("SALTERN_RATE_LIMITS must be on, off, or figures") == true)
    }

    @Test func `a misspelt variable is refused, also as a file, and an empty one that is read by others`() throws {
        let settings = Settings([
            "SALTERN_LISTEM": "x", "SALTERN_LISTEN": "y", "SALTERN_TYPO_FILE": "z", "HOME": "",
            "SALTERN_OWNER_DATABASE_URL": "",
        ])
        let failure = #expect(throws: CommandFailure.self) { try settings.finish() }
        #expect(
            failure?.messages == [
                "SALTERN_LISTEM is not a setting",
                "SALTERN_OWNER_DATABASE_URL is empty: leave it out, or give it a value",
                "SALTERN_TYPO_FILE is not a setting",
            ])
    }

    @Test func `all problems are told at once`() throws {
        let directory = try TemporaryDirectory()
        let failure = #expect(throws: CommandFailure.self) {
            _ = try ServeConfiguration(
                [
                    "SALTERN_LISTEN": "8443", "SALTERN_LOOPS": "0", "SALTERN_REGISTRATION": "maybe",
                    "SALTERN_METRICS_LISTEN": "9090", "SALTERN_TLS_DIRECTORY": directory.missing,
                    "SALTERN_KDF_MINIMUM_ITERATIONS": "9999", "SALTERN_SALT_PREFIX": "a:",
                ], coreCount: 2)
        }
        let messages = try #require(failure?.messages)
        for name in [
            "SALTERN_LISTEN must be", "SALTERN_LOOPS must be", "SALTERN_REGISTRATION must be",
            "SALTERN_METRICS_LISTEN must be", "SALTERN_TLS_DIRECTORY: cannot read",
            "SALTERN_DATABASE_URL is missing", "SALTERN_MASTER_KEY_FILE is missing",
            "SALTERN_KDF_MINIMUM_ITERATIONS must be",
        ] {
            #expect(messages.contains { $0.hasPrefix(name) }, "\(name) in \(messages)")
        }
        #expect(messages.count == 8)
    }

    @Test(arguments: [
        ("app:p@ss@host/db", true), ("app:p?s@s@host/db", true), ("app:p/ss@host/db", true), ("app:p%zz@host/db", true),
        ("app:p%40ss@host/db", false), ("app:p?ss@host/db", false), ("app:pss@host/db?application_name=a@b", false),
        ("app@h1,h2/db", false),
    ])
    func `a password that a URL has as it is gets a hint, and is not quoted`(rest: String, isHinted: Bool) {
        var settings = Settings(["SALTERN_DATABASE_URL": "postgresql://" + rest])
        _ = settings.serverDatabase()
        #expect(settings.problems.contains { $0.contains("@ is %40") } == isHinted, "\(settings.problems)")
        #expect(!settings.problems.contains { $0.contains("ss@") || $0.contains("zz") })
    }

    @Test(arguments: [
        ("?port=99999", "the port in the database URL is not a number from 1 to 65535"),
        ("?port=0", "the port in the database URL is not a number from 1 to 65535"),
        ("?host=a,b&port=1,99999", "the port in the database URL is not a number from 1 to 65535"),
        ("?port=hunter2", "the port in the database URL is not a number from 1 to 65535"),
        ("?sslmode=nonsense", "the value of sslmode in the database URL is unknown to libpq"),
        ("?target_session_attrs=hunter2", "the value of target_session_attrs in the database URL is unknown to libpq"),
        ("?host=a,b,c&port=1,2", "the database URL has lists of hosts, addresses and ports of different lengths"),
        ("?host=a,b&hostaddr=::1", "the database URL has lists of hosts, addresses and ports of different lengths"),
    ])
    func `what libpq would never connect with is refused at once`(words: String, problem: String) {
        var settings = Settings(["SALTERN_DATABASE_URL": "postgresql:///saltern" + words])
        #expect(settings.serverDatabase() == nil)
        #expect(settings.problems == ["SALTERN_DATABASE_URL: \(problem)"])
    }

    @Test(arguments: [
        "postgresql://ada@a.example,b.example:1,[::1]:2/x?sslmode=verify-full", "host=/run/postgresql", "dbname=x",
        "host=a,b port=5433 sslmode=require", "hostaddr=10.0.0.1,10.0.0.2 port=1,2 gssencmode=disable",
    ])
    func `nobody is asked whether a connection string may be used`(text: String) {
        var settings = Settings(["SALTERN_DATABASE_URL": text])
        #expect(settings.serverDatabase() != nil)
        #expect(settings.problems == [])
    }

    @Test func `a connection string that is none is refused without being quoted`() throws {
        var settings = Settings(["SALTERN_DATABASE_URL": "host=db password=hunter2 nonsense=hunter2"])
        #expect(settings.serverDatabase() == nil)
        let problem = try #require(settings.problems.first)
        #expect(problem.hasPrefix("SALTERN_DATABASE_URL: "))
        #expect(!problem.contains("hunter2"))
    }
}
