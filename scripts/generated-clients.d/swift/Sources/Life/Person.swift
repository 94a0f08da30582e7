import Foundation
import SalternAPI

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

let iterations = 600_000
let format = "aes-256-gcm"

struct Unexpected: Error, CustomStringConvertible {
    let description: String
}

func check(_ holds: Bool, _ expected: @autoclosure () -> String) throws {
    if !holds { throw Unexpected(description: "expected \(expected())") }
}

func same<Value: Equatable>(_ actual: Value?, _ expected: Value, _ name: String) throws {
    try check(actual == expected, "\(name) \(expected), got \(actual.map { "\($0)" } ?? "nothing")")
}

/// Returns the problem with which the server refuses the call.
@discardableResult
func refused<Answer, P: Decodable>(
    _ status: Int, _ code: String, as _: P.Type = Problem.self, _ call: () async throws(ErrorResponse) -> Answer
) async throws -> P {
    do {
        _ = try await call()
    } catch .error(let actual, let data, _, _) {
        let data = data ?? Data()
        let general = try CodableHelper().decode(Problem.self, from: data).get()
        try check(actual == status && general.code == code, "\(status) \(code), got \(actual) \(general.code)")
        return try CodableHelper().decode(P.self, from: data).get()
    }
    throw Unexpected(description: "expected \(status) \(code), and it succeeded")
}

func random(_ size: Int) -> Data { Data((0..<size).map { _ in UInt8.random(in: 0...255) }) }

func sealed(_ size: Int) -> String { random(size).base64EncodedString() }

/// Returns as many sealed bytes as query parameters have them.
func urlSealed(_ size: Int) -> String {
    sealed(size).replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
}

func tag(_ revision: Int64) -> String { "\"\(revision)\"" }

/// A person with a password.
struct Person {
    static let environment = ProcessInfo.processInfo.environment
    let anybody = Person.client()
    var userid = Person.newUserid()
    var passwordKey = ""

    static func newUserid() -> String { "swift-\(UUID().uuidString.lowercased())@example.org" }

    static func client(_ token: String? = nil) -> SalternAPIAPIConfiguration {
        let headers = token.map { ["Authorization": "Bearer \($0)"] } ?? [:]
        return SalternAPIAPIConfiguration(basePath: environment["SALTERN_TEST_URL"] ?? "", customHeaders: headers)
    }

    /// Derives a key with the command of docs/protocol.md.
    private static func pbkdf2(_ password: String, _ salt: String, _ iterations: Int) throws -> Data {
        let openssl = Process()
        openssl.executableURL = URL(filePath: "/usr/bin/openssl")
        openssl.arguments =
            ["kdf", "-keylen", "32", "-binary"]
            + ["digest:SHA256", "pass:\(password)", "salt:\(salt)", "iter:\(iterations)"].flatMap { ["-kdfopt", $0] } + ["PBKDF2"]
        let output = Pipe()
        openssl.standardOutput = output
        try openssl.run()
        let key = output.fileHandleForReading.readDataToEndOfFile()
        openssl.waitUntilExit()
        try check(openssl.terminationStatus == 0 && key.count == 32, "a key of 32 bytes")
        return key
    }

    /// Derives as docs/protocol.md defines it, after its test vector.
    func key(_ password: String) async throws -> String {
        let vector = try Self.pbkdf2("S3kr3t!", "com.example.MyGreatSite:robnapier@gmail.com", 10_000)
        try same(
            vector.map { String(format: "%02x", $0) }.joined(),
            "f68a328661383beb161e7fc403de2d1507ee84d670d5064d508991a240853ded", "the test vector")
        let kdf = try await AccountsAPI.getKDFParameters(
            kDFRequest: KDFRequest(userid: userid), apiConfiguration: anybody)
        try same(kdf.keyLength.rawValue, 32, "a key length of")
        try same(kdf.salt, kdf.saltPrefix + userid, "the salt")
        return try Self.pbkdf2(password, kdf.salt, kdf.iterations).base64EncodedString()
    }

    func logIn(_ device: KnownDevice? = nil, totp: String? = nil) async throws(ErrorResponse) -> Login {
        let request = LoginRequest(userid: userid, passwordKey: passwordKey, device: device, totp: totp)
        return try await SessionsAPI.logIn(loginRequest: request, apiConfiguration: anybody)
    }
}
