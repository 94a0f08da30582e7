import Foundation
import SalternTesting
import Synchronization
import Testing

// Without Cryptography: an app has the type of bytes by this import.
import SalternClient

/// Data, texts and files as content.
@Suite struct ContentTests {
    private let folder: TemporaryDirectory
    private let link = LossyTransport(MemoryServer())

    init() throws { folder = try TemporaryDirectory(.memory) }

    private func url(_ name: String) -> URL { URL(filePath: folder.path + "/" + name) }

    private func signUp() async throws -> Vault {
        let settings = VaultSettings.forTests(folder: folder.path + "/store", link, name: "phone")
        return try await Vault.signUp(settings, userid: "ada", password: Password("password"))
    }

    @Test func `bytes are made of data and texts, and the other way round`() {
        let text = "Sal y pimienta: \u{1F9C2}"
        let bytes = SecureBytes(text)
        #expect(bytes == SecureBytes(Data(text.utf8)) && bytes.count == text.utf8.count)
        #expect(String(bytes) == text && Data(bytes) == Data(text.utf8))
        #expect(String(SecureBytes(Data([0xff]))) == nil)
        #expect(SecureBytes("").isEmpty && Data(SecureBytes("")).isEmpty && String(SecureBytes("")) == "")
        let item = PlainItem(title: "list", text: text)
        #expect(item.text == text && item.data == Data(text.utf8) && item == PlainItem(title: "list", data: item.data))
        #expect(PlainItem(data: Data([0xff])).text == nil)
    }

    @Test func `a file becomes an attachment, and an attachment a file`() async throws {
        let vault = try await signUp()
        // Longer than a chunk, and no server for it: it waits on this device.
        link.setUnreachable(true)
        let content = Data((0..<1_300_000).map { UInt8(truncatingIfNeeded: $0 / 7) })
        try content.write(to: url("photo"))
        let steps = Steps()
        let photo = try await vault.attach(file: url("photo"), properties: ["name": "photo"]) {
            steps.add($0.byteCount)
        }
        #expect(photo.pieceCount == 3 && photo.properties == ["name": "photo"])
        #expect(steps.last == Int64(content.count))
        #expect(try await vault.data(of: photo) == content)
        let place = url("copy")
        try Data("before".utf8).write(to: place)
        try await vault.save(photo, to: place) { steps.add($0.byteCount) }
        #expect(try Data(contentsOf: place) == content)
        let mode = try FileManager.default.attributesOfItem(atPath: place.path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        let short = try await vault.attach(AttachmentSource("short"))
        #expect(String(try await vault.content(of: short)) == "short")
        #expect(try await vault.data(of: vault.attach(AttachmentSource(Data("data".utf8)))) == Data("data".utf8))
        #expect(try names() == ["copy", "photo", "store"])
    }

    @Test func `a file that cannot be read or written is an error, and leaves nothing`() async throws {
        let vault = try await signUp()
        func isSourceFailed(_ error: any Error) -> Bool {
            if case VaultError.sourceFailed = error { true } else { false }
        }
        await #expect { try await vault.attach(file: self.url("missing")) } throws: { isSourceFailed($0) }
        await #expect { try await vault.attach(file: self.url("store")) } throws: { isSourceFailed($0) }
        let short = try await vault.attach(AttachmentSource("short"))
        for name in ["no/such/folder", "store"] {
            await #expect {
                try await vault.save(short, to: self.url(name))
            } throws: {
                if case VaultError.store(.unusable) = $0 { true } else { false }
            }
        }
        // One whose content cannot be fetched keeps what was there.
        link.setUnreachable(true)
        let long = try await vault.attach(AttachmentSource(Data(count: 600_000)))
        try await vault.abandonAttachment(long.id)
        try await vault.removeAttachmentCopies()
        try Data("before".utf8).write(to: url("copy"))
        await #expect(throws: VaultError.self) { try await vault.save(long, to: self.url("copy")) }
        #expect(try Data(contentsOf: url("copy")) == Data("before".utf8))
        #expect(try names() == ["copy", "store"])
    }

    private func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
    }
}

private final class Steps: Sendable {
    private let counts = Mutex<[Int64]>([])

    var last: Int64? { counts.withLock { $0.last } }

    func add(_ count: Int64) { counts.withLock { $0.append(count) } }
}
