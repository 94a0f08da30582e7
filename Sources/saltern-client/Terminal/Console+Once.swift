import CommandLineKit
import Cryptography
import Foundation

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
