import Foundation
import NotesModel
import Observation
import SalternClient

/// The app for a terminal: each call is a launch of its own, with one command.
@main @MainActor
struct Terminal {
    let model: NotesModel
    let server: URL

    static func main() async {
        do {
            let terminal = try Terminal(ProcessInfo.processInfo.environment)
            try await terminal.run(Array(CommandLine.arguments.dropFirst()))
        } catch {
            try? FileHandle.standardError.write(contentsOf: Data("notes: \(error.localizedDescription)\n".utf8))
            exit(1)
        }
    }

    /// An app for people has all of this in its code, but for the folder and the device's name.
    private init(_ environment: [String: String]) throws {
        let base = environment["NOTES_SERVER"] ?? "https://localhost:8443"
        guard let folder = environment["NOTES_FOLDER"], let server = URL(string: base) else { throw Usage() }
        let certificate = try environment["NOTES_CERTIFICATE"].map { try Data(contentsOf: URL(filePath: $0)) }
        self.server = server
        model = NotesModel(
            VaultSettings(
                folder: URL(filePath: folder),
                transport: try Self.transport(
                    PinnedServer(
                        base: base, pins: environment["NOTES_PIN"].map { [$0] } ?? [],
                        anchor: certificate.map(Array.init))),
                stretching: StretchingRule(saltPrefix: "localhost.saltern:"),
                deviceName: environment["NOTES_DEVICE"]))
    }

    private static func transport(_ server: PinnedServer) throws -> any HTTPTransport {
        #if os(Linux)
            try CurlTransport(server)
        #else
            try URLSessionTransport(server)
        #endif
    }

    private func run(_ words: [String]) async throws {
        try await model.start()
        while !model.isLoaded { await change { model.isLoaded } }
        let rest = words.dropFirst(2)
        switch (words.first ?? "", words.count) {
        case ("sign-up", 2): try await model.signUp(words[1], ask("Password"))
        case ("log-in", 2...3): try await logIn(words[1], code: rest.first)
        case ("recover", 3): try await model.recover(words[1], code: words[2], newPassword: ask("New password"))
        case ("list", 1...2): show(tag: words.dropFirst().first)
        case ("watch", 1): try await watch()
        case ("add", 2...): try await change(nil) { $0 = Note(text: words[1], tags: Array(rest)) }
        case ("edit", 3): try await change(words[1]) { $0.text = words[2] }
        case ("tag", 2...): try await change(words[1]) { $0.tags = Array(rest) }
        case ("delete", 2): try await model.delete(entry(words[1]).id)
        case ("attach", 3):
            let attachment = try await model.attachment(of: URL(filePath: words[2]))
            try await change(words[1]) { $0.attachments.append(attachment) }
        case ("save", 4): try await save(words[2], of: entry(words[1]).note, to: URL(filePath: words[3]))
        case ("share", 2): print(try await model.share(entry(words[1]).id, server: server))
        case ("keep", 3): try await keep(words[1], entry(words[2]))
        case ("agree", 1): try await model.agreeToDeletions()
        case ("sync", 1): try await model.syncNow()
        case ("lock", 1): try await model.lock()
        case ("unlock", 1): try await model.unlock(ask("Password"))
        case ("change-password", 1): try await model.changePassword(from: ask("Password"), to: ask("New password"))
        case ("recovery-code", 1): print(try await model.makeRecoveryCode(ask("Password")))
        case ("devices", 1):
            for session in try await model.devices() {
                print(session.id, session.device?.name ?? "-", session.current ? "this" : "", separator: "\t")
            }
        case ("end-session", 2): try await model.endSession(SessionID(words[1]) ?? .random())
        case ("sign-out", 1): try await model.signOut()
        case ("discard-and-sign-out", 1): try await model.signOut(discardingUnsentEdits: true)
        case ("delete-account", 1): try await model.deleteAccount(ask("Password"))
        default: throw Usage()
        }
    }

    // MARK: Commands

    private func logIn(_ userid: String, code: String?) async throws {
        if model.stage == .signedOut {
            try await model.logIn(userid, ask("Password"), code: code)
        } else {
            try await model.logInAgain(ask("Password"), code: code)
        }
    }

    /// Changes a note, or makes one, and prints its id.
    private func change(_ note: String?, _ edit: (inout Note) -> Void) async throws {
        var draft = try await model.draft(note.map { try entry($0).id })
        edit(&draft.note)
        try await model.save(draft)
        print(draft.id)
    }

    private func show(tag: String? = nil) {
        for entry in model.entries where tag.map(entry.note.tags.contains) ?? true {
            let tags = entry.note.tags.map { " #\($0)" }.joined()
            let files = entry.note.attachments.map { " [\($0.properties["name"] ?? "")]" }.joined()
            let copy = entry.conflict.flatMap(\.item).map { " (this device's version of \($0))" } ?? ""
            print("\(entry.id)\t\(entry.note.headline)\(tags)\(files)\(copy)")
        }
        if model.unreadableCount > 0 { print("\(model.unreadableCount) notes cannot be read by this version.") }
        if model.areDeletionsHeld { print("Many notes were deleted elsewhere: agree?") }
    }

    /// Prints the list again after each change, until the session ends.
    private func watch() async throws {
        let printing = Task {
            while !Task.isCancelled {
                print("--")
                show()
                fflush(nil)
                await change { model.entries }
            }
        }
        defer { printing.cancel() }
        // Nobody types a password here: the end of the session is an error.
        try await model.account?.vault.keepInSync()
    }

    /// Waits until something that the closure reads has changed, as `Observations` does from macOS 26 on.
    private func change(of read: () -> some Any) async {
        await withCheckedContinuation { continuation in
            withObservationTracking {
                _ = read()
            } onChange: {
                continuation.resume()
            }
        }
    }

    private func save(_ name: String, of note: Note, to file: URL) async throws {
        guard let attachment = note.attachments.first(where: { $0.properties["name"] == name }) else {
            throw VaultError.notFound
        }
        try await model.save(attachment, to: file)
    }

    private func keep(_ choice: String, _ entry: NotesModel.Entry) async throws {
        guard let choice = NotesModel.Choice(rawValue: choice) else { throw Usage() }
        try await model.settle(entry, keeping: choice)
    }

    // MARK: Input

    /// Returns the note whose id begins with a text.
    private func entry(_ text: String) throws -> NotesModel.Entry {
        let found = model.entries.filter { $0.id.description.hasPrefix(text) }
        guard found.count == 1, let entry = found.first else { throw VaultError.notFound }
        return entry
    }

    /// Reads a line from standard input, without showing it on a terminal.
    private func ask(_ question: String) throws -> String {
        if isatty(STDIN_FILENO) == 1 { return String(cString: getpass(question + ": ")) }
        guard let line = readLine() else { throw Usage() }
        return line
    }
}

/// Words that are no command.
struct Usage: LocalizedError {
    var errorDescription: String? { "No such command, or a word is missing; README.md has all of them." }
}
