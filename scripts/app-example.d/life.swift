// Calls the functions that docs/app.md shows, on two devices of one account, and prints what an author of an app is promised.

import Foundation
import SalternClient

struct Failed: Error, CustomStringConvertible { var description: String }

func check(_ condition: Bool, _ expected: String) throws {
    guard condition else { throw Failed(description: "expected: \(expected)") }
}

let arguments = CommandLine.arguments
let certificate = try Data(contentsOf: URL(filePath: arguments[3]))
let server = PinnedServer(base: arguments[1], pins: [arguments[2]], anchor: Array(certificate))
let userid = arguments[4]
let folder = URL.temporaryDirectory.appending(path: "life/\(userid)")

/// A transport whose network can be switched off.
final class Network: HTTPTransport {
    private let transport: CurlTransport
    private let isOffline: @Sendable () -> Bool

    init(isOffline: @escaping @Sendable () -> Bool) throws {
        transport = try CurlTransport(server)
        self.isOffline = isOffline
    }

    var host: String? { transport.host }

    func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPReply {
        if isOffline() { throw .unreachable }
        return try await transport.send(request)
    }

    func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPReplyStream {
        if isOffline() { throw .unreachable }
        return try await transport.stream(request)
    }
}

struct NoAuthenticator: PasskeyAuthenticator {
    func create(_ options: PasskeyCreationOptions) async throws(PasskeyError) -> PasskeyRegistration {
        throw .noAuthenticator
    }

    func get(_ options: PasskeyRequestOptions, prf input: [UInt8]?) async throws(PasskeyError) -> PasskeyAnswer {
        throw .noAuthenticator
    }
}

/// The network is off while this file exists.
let offline = folder.appending(path: "offline")

func settings(of device: String) throws -> VaultSettings {
    let offline = offline.path
    var settings = settings(
        folder: folder.appending(path: device),
        transport: try Network { FileManager.default.fileExists(atPath: offline) })
    // A machine that is busy with other tests answers late.
    settings.retries = Retries(attempts: 5, waits: .milliseconds(200)...(.seconds(3)))
    return settings
}

func withoutNetwork<Result>(_ body: () async throws -> Result) async throws -> Result {
    try Data().write(to: offline)
    defer { try? FileManager.default.removeItem(at: offline) }
    return try await body()
}

/// Opens the vault of a device as a start of the app does.
func start(_ device: String) async throws -> Vault {
    switch try await launch(settings(of: device)) {
    case .welcome: throw Failed(description: "no vault on \(device)")
    case .locked(let vault), .list(let vault): return vault
    }
}

func texts(_ vault: Vault) async throws -> [String] {
    try await notes(vault).contents().items.values.map(\.text).sorted()
}

func life() async throws {
    // First launch.
    if case .welcome = try await launch(settings(of: "phone")) { print("first launch: welcome") }
    let id = ItemID.random()
    do {
        let phone = try await signUp(settings(of: "phone"), userid, "correct horse")
        // As version 1 of the app would have written it.
        try await phone.collection("notes", of: FirstNote.self).put(FirstNote(body: "Buy salt."), id)
        print("a new version of the type: \(try await notes(phone)[id]?.text ?? "unreadable")")
        try await phone.sync()
    }

    // Next launches, locked and not.
    do {
        guard case .list(let phone) = try await launch(settings(of: "phone")) else {
            throw Failed(description: "a list")
        }
        print("next launch: \(try await texts(phone))")
        try await lock(phone)
    }
    do {
        guard case .locked(let phone) = try await launch(settings(of: "phone")) else {
            throw Failed(description: "locked")
        }
        print("next launch: locked")
        try await withoutNetwork {
            do throws(VaultError) {
                try await unlock(phone, "wrong horse")
                throw VaultError.notFound
            } catch { print("unlock: \(error.localizedDescription)") }
            try await unlock(phone, "correct horse")
            print("unlock, offline: \(try await texts(phone))")
        }
    }

    // Two devices.
    let phone = try await start("phone")
    let laptop = try await logIn(settings(of: "laptop"), userid, "correct horse") { nil }
    try await laptop.sync()

    // List and edit: the sequence brings each change.
    let observing = Task {
        await follow(phone) { rows, unreadable in
            if rows.map(\.value.text) == ["Buy salt and oil."] { withUnsafeCurrentTask { $0?.cancel() } }
        }
    }
    guard var draft = try await edit(id, in: phone) else { throw Failed(description: "a draft") }
    draft.note.text = "Buy salt and oil."
    try check(try await save(draft, in: phone) == id, "the same item")
    await observing.value
    print("list: observed")

    // A draft of a version that is no longer the present one becomes an item of its own.
    draft.note.text = "Buy salt and vinegar."
    let copy = try await save(draft, in: phone)
    try check(copy != id, "another item")
    print("edit: \(try await texts(phone))")
    try await delete(copy, in: phone)
    try await undelete(copy, in: phone)
    try await delete(copy, in: phone)
    print("delete and restore: \(try await texts(phone)), \(try await phone.replacedVersions(of: id).count) previous")
    for notice in try await phone.notices() { try await phone.forget(notice) }

    // Offline, and an attachment that waits.
    let file = folder.appending(path: "photo.jpg")
    let bytes = Data((0..<1_500_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    try bytes.write(to: file)
    try await withoutNetwork {
        guard let draft = try await edit(id, in: phone) else { throw Failed(description: "a draft") }
        _ = try await attach(file, to: draft, in: phone)
        let note = try await notes(phone)[id]
        try check(try await photo(of: note ?? draft.note, in: phone) == bytes, "the photo, offline")
        _ = try? await phone.sync()
        print("offline: \(status(await phone.state, unsent: try await phone.unsentCount()))")
    }
    try await phone.sync()
    print("online: \(status(await phone.state, unsent: try await phone.unsentCount()))")

    // Both devices change the note: the merge has both changes.
    guard var other = try await edit(id, in: laptop) else { throw Failed(description: "a draft") }
    other.note.isPinned = true
    _ = try await save(other, in: laptop)
    try await laptop.sync()
    guard let both = try await notes(laptop)[id] else { throw Failed(description: "the note") }
    try check(try await photo(of: both, in: laptop) == bytes, "the photo on the laptop")
    print("merge: \(both.text) pinned \(both.isPinned ?? false), with a photo")

    // Both change the text: both are kept.
    try await phone.sync()
    for (device, text) in [(phone, "Buy pepper."), (laptop, "Buy garlic.")] {
        guard var draft = try await edit(id, in: device) else { throw Failed(description: "a draft") }
        draft.note.text = text
        _ = try await save(draft, in: device)
        try await device.sync()
    }
    for conflict in try await conflicts(in: laptop) {
        guard let item = conflict.item, let copy = conflict.other else { throw Failed(description: "both items") }
        let theirs = try await notes(laptop)[item]?.text ?? ""
        print("conflict: \(theirs) \(try await notes(laptop)[copy]?.text ?? "")")
    }
    try await laptop.sync()
    try await phone.sync()
    try check(try await conflicts(in: laptop).isEmpty, "no conflict twice")

    // A share.
    guard let address = URL(string: arguments[1]), let link = try await share(id, in: phone, server: address) else {
        throw Failed(description: "a link")
    }
    let shared = try await open(link, in: laptop)
    print("share: \(shared.contains("Buy pepper."))")

    // No passkey is added without an authenticator, or on a server without passkeys.
    do throws(VaultError) {
        try await addPasskey("Phone", to: phone, "correct horse", with: NoAuthenticator())
        throw VaultError.notFound
    } catch {
        switch error {
        case .refused, .passkey(.noAuthenticator): print("passkey: none")
        default: throw Failed(description: "no passkey, but \(error)")
        }
    }
    try await removePasskeys(named: "Phone", from: phone, "correct horse")

    // A new password ends the laptop's session. What it has not sent stays.
    try await changePassword(of: phone, from: "correct horse", to: "battery staple")
    try await notes(laptop).put(Note(text: "From the laptop."))
    await stayInSync(laptop) { error in print("password changed elsewhere: \(reaction(to: error))") }
    try await renewSession(of: laptop, "battery staple")
    try await laptop.sync()
    try await phone.sync()
    print("after the log-in: \(try await texts(phone))")

    // A lost device, and a forgotten password.
    let first = try await makeRecoveryCode(in: phone, "battery staple")
    let code = try await shutOutLostDevice(from: phone, "battery staple", new: "purple monkey") ?? ""
    try check(!code.isEmpty && code != first, "another code")
    do throws(VaultError) {
        try await laptop.sync()
    } catch { print("lost device: \(reaction(to: error))") }
    let tablet = try await recover(settings(of: "tablet"), userid, code: code, newPassword: "green lamp")
    try await tablet.sync()
    print("recovered: \(try await texts(tablet))")

    // Signing out.
    try await notes(laptop).put(Note(text: "Never sent."))
    do throws(VaultError) {
        try await signOut(of: laptop)
    } catch { print("sign out: \(error.localizedDescription)") }
    try await signOut(of: laptop, discarding: true)
    try await signOut(of: tablet)
    print("signed out: \(status(await tablet.state, unsent: 0))")
}

do {
    try await life()
} catch {
    print("failed: \(error)")
    exit(1)
}
