import CommandLineKit
import Foundation

/// The user's editor: `VISUAL`, or `EDITOR`.
struct Editor {
    private let command: String
    private let environment: [String: String]

    init(_ environment: [String: String]) throws(CommandFailure) {
        guard
            let command = [environment["VISUAL"], environment["EDITOR"]].compactMap(\.self).first(where: { !$0.isEmpty }
            )
        else {
            throw CommandFailure(
                "neither VISUAL nor EDITOR is set", status: ExitStatus.configuration, code: "no_editor")
        }
        self.command = command
        self.environment = environment
    }

    /// Edits a file. The editor's own temporary files go beside it.
    /// - Throws: ``CommandFailure`` when the editor fails, `CancellationError` when the process has to end.
    func edit(_ file: String, in folder: PrivateFolder) async throws {
        var environment = environment
        environment["TMPDIR"] = folder.path
        let editor = try start(["/bin/sh", "-c", command + " \"$1\"", "sh", file], environment)
        // A separate thread waits, because the editor may be open for hours.
        let status = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                DispatchQueue.global().async { continuation.resume(returning: editor.wait()) }
            }
        } onCancel: {
            editor.send(SIGTERM)
        }
        if Task.isCancelled { throw CancellationError() }
        guard status == 0 else {
            throw CommandFailure("the editor failed; the item was not changed", status: 1, code: "editor_failed")
        }
    }

    private func start(_ words: [String], _ environment: [String: String]) throws(CommandFailure) -> ChildProcess {
        do throws(CommandFailure) {
            return try ChildProcess(words, environment: environment)
        } catch {
            throw CommandFailure("the editor cannot be started", status: 1, code: "editor_failed")
        }
    }
}
