import CommandLineKit
import Cryptography
import Foundation
import SalternClient

extension Console {
    /// Prints a value as one object, for scripts.
    func printJSON(_ value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .iso8601
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        writeJSON(Array(try encoder.encode(value)) + [UInt8(ascii: "\n")])
    }

    /// Prints an object for scripts, or text for the user.
    func show(_ value: some Encodable, asJSON: Bool, _ text: () -> String) throws {
        if asJSON { try printJSON(value) } else { write(text()) }
    }

    /// Runs a long operation, and shows its progress on a terminal.
    func showingProgress<Result>(of vault: Vault, _ body: () async throws -> Result) async throws -> Result {
        guard isTerminal else { return try await body() }
        let progress = vault.progress()
        let line = Task {
            var isShown = false
            for await step in progress {
                draw("\r\(step.text)\u{1b}[K")
                isShown = true
            }
            if isShown { draw("\r\u{1b}[K") }
        }
        let result = await Swift.Result { try await body() }
        line.cancel()
        await line.value
        return try result.get()
    }
}

extension Swift.Result where Failure == any Error {
    fileprivate init(_ body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}

extension VaultProgress {
    fileprivate var text: String {
        switch self {
        case .fetched(let count): "\(counted(count, "change")) fetched"
        case .sent(let count, let total): "\(count) of \(counted(total, "change")) sent"
        case .sentContent(let bytes, let total): "\(bytes) of \(counted(total, "byte")) of attachments sent"
        case .sealedAnew(let count, let total): "\(count) of \(counted(total, "item")) re-encrypted"
        case .exported(let bytes): "\(counted(bytes, "byte")) written"
        case .imported(let bytes, let total): "\(bytes) of \(counted(total, "byte")) imported"
        case .read(let bytes): "\(counted(bytes, "byte")) of the folder read"
        case .settled(let count, let total): "\(count) of \(counted(total, "file"))"
        }
    }
}

extension Date {
    /// The time to the second, for tables.
    var shown: String { formatted(.iso8601) }
}

extension Console {
    /// Prints text that no later command can print again: a new code, a new link.
    /// - Throws: ``CommandFailure`` with status 74 when it cannot be written. The text is then in a file in memory,
    ///   which the message names.
    func showOnce(_ value: some Encodable, asJSON: Bool, _ text: () -> String) throws {
        try show(value, asJSON: asJSON, text)
        guard hasLostOutput else { return }
        throw Self.lost(SecureBytes(copying: text().utf8), environment)
    }

    private static func lost(_ text: SecureBytes, _ environment: [String: String]) -> CommandFailure {
        let failure = CommandFailure(
            "the output cannot be written", status: ExitStatus.store, code: "output_unusable")
        return keptInMemory(text, "the output", failure, environment)
    }

    /// Writes content that would be lost to a file in memory.
    /// - Returns: The failure, with a message that names the file; the failure alone when there is no file system in
    ///   memory.
    static func keptInMemory(
        _ content: SecureBytes, _ name: String, _ failure: CommandFailure, _ environment: [String: String]
    ) -> CommandFailure {
        guard let folder = try? PrivateFolder(environment, of: URL(filePath: "/")) else { return failure }
        let file = try? content.withUnsafeBytes { bytes throws(CommandFailure) in try folder.write("content", bytes) }
        guard let file else {
            folder.wipe()
            return failure
        }
        return CommandFailure(
            failure.messages.map { "\($0); \(name) is in \(file): move it from there" }, status: failure.status,
            code: failure.code)
    }
}
