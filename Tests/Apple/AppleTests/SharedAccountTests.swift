import Cryptography
import Foundation
import Testing

@testable import SalternClient

/// The server's address without TLS.
private let plainURL = ProcessInfo.processInfo.environment["SALTERN_TEST_PLAIN_URL"]

/// What a whole vault does on Apple's half of the kit, with a real server, and an account that the other half has made and
/// goes on with. Tests/Integration/client-apple.sh runs it.
@Suite(.enabled(if: plainURL != nil)) struct SharedAccountTests {
    /// What both halves have: what one leaves is a file that the other reads.
    private let folder: URL

    init() throws { folder = URL(filePath: try #require(ProcessInfo.processInfo.environment["SALTERN_TEST_FOLDER"])) }

    private func line(_ file: String) throws -> String {
        let text = try String(contentsOf: folder.appending(path: file), encoding: .utf8)
        return String(text.prefix { $0 != "\n" })
    }

    private func settings(_ device: String) throws -> VaultSettings {
        let base = try #require(plainURL)
        let trust = try #require(ServerTrust(PinnedServer(base: base, pins: [])))
        return VaultSettings(
            folder: folder.appending(path: device), transport: URLSessionTransport(to: base, trust),
            stretching: StretchingRule(saltPrefix: "localhost.saltern:"), deviceName: device,
            deviceKey: KeychainDeviceKeyStore(service: "org.example.notes", account: device))
    }

    @Test func `two devices change what another platform's has made, hear of each other, and print a code`()
        async throws
    {
        let userid = try line("userid")
        let password = Password(try line("password"))
        let phone = try await Vault.logIn(settings("iphone"), userid: userid, password: password)
        try await phone.sync()
        let note = try #require(try await phone.items().first { $0.title == "shopping" })
        #expect(try await phone.wholeItem(note.id)?.body == SecureBytes(copying: "Buy salt.\n".utf8))

        let laptop = try await Vault.logIn(settings("mac"), userid: userid, password: password)
        try await laptop.sync()
        let changes = laptop.changes()
        let following = Task { try await laptop.keepInSync() }
        let changed = PlainItem(title: "shopping", body: SecureBytes(copying: "Buy pepper.\n".utf8))
        try await phone.put(changed, note.id, in: note.collection)
        let film = SecureRandom.secureBytes(1_500_000)
        try film.withUnsafeBytes { try Data($0).write(to: folder.appending(path: "film")) }
        let attachment = try await phone.attach(AttachmentSource(film))
        try await phone.put(PlainItem(title: "film", body: attachment.body()), .random(), in: note.collection)
        try await phone.sync()
        for await ids in changes where ids.contains(note.id) { break }
        following.cancel()
        #expect(try await laptop.wholeItem(note.id)?.body == changed.body)

        let code = try await laptop.makeRecoveryCode(password: password)
        try Data(code.text.utf8).write(to: folder.appending(path: "code"))
    }

    @Test func `after the other platform has drawn a new key, everything opens with the new password`() async throws {
        let vault = try await Vault.logIn(
            settings("ipad"), userid: line("userid"), password: Password(line("password-2")))
        try await vault.sync()
        let titles = try await vault.items().compactMap(\.title)
        #expect(Set(titles).isSuperset(of: ["shopping", "film"]))
        let film = try #require(try await vault.items().first { $0.title == "film" })
        let content = try #require(try await vault.wholeItem(film.id)?.body)
        #expect(content.withUnsafeBytes { Data($0) } == (try Data(contentsOf: folder.appending(path: "film"))))
    }
}
