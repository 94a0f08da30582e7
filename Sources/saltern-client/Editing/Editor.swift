import CommandLineKit
import Foundation

/// The program that a person edits with: `VISUAL`, or `EDITOR`.
struct Editor {
    private let command: String
    private let environment: [String: String]

    init(_ environment: [String: String]) throws(CommandFailure) {
        guard
            let command = [environment["VISUAL"], environment["EDITOR"]].compactMap(\.self).first(where: { !$0.isEmpty }
            )
        else {
            throw CommandFailure(
                "neither VISUAL nor EDITOR says what to edit with", status: ExitStatus.configuration, code: "no_editor")
        }
        self.command = command
        self.environment = environment
    }

    /// Edits a file. The editor's own temporary files go beside it.
    /// - Throws: ``CommandFailure`` when the editor fails, `CancellationError` when the process shall end.
    func edit(_ file: String, in folder: PrivateFolder) async throws {
        var environment = environment
        environment["TMPDIR"] = folder.path
        let editor = try spawn(["/bin/sh", "-c", command + " \"$1\"", "sh", file], environment)
        // What waits here is a thread of its own: the editor may be open for hours.
        let status = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                DispatchQueue.global().async { continuation.resume(returning: Self.wait(for: editor)) }
            }
        } onCancel: {
            kill(editor, SIGTERM)
        }
        if Task.isCancelled { throw CancellationError() }
        guard status == 0 else {
            throw CommandFailure("the editor failed; the item was not changed", status: 1, code: "editor_failed")
        }
    }

    private static func wait(for process: pid_t) -> Int32 {
        var status: Int32 = -1
        while waitpid(process, &status, 0) < 0 {
            if errno != EINTR { return -1 }
        }
        return status
    }

    private func spawn(_ arguments: [String], _ environment: [String: String]) throws(CommandFailure) -> pid_t {
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // This process ignores them, and a child would inherit that.
        var signals = sigset_t()
        sigemptyset(&signals)
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGPIPE] { sigaddset(&signals, signal) }
        posix_spawnattr_setsigdefault(&attributes, &signals)
        // The threads that tasks run on block nearly every signal, and a child would inherit that too.
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
        var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        var variables: [UnsafeMutablePointer<CChar>?] = environment.map { strdup("\($0)=\($1)") } + [nil]
        defer { for word in words + variables { free(word) } }
        var process: pid_t = 0
        guard posix_spawn(&process, arguments[0], nil, &attributes, &words, &variables) == 0 else {
            throw CommandFailure("the editor cannot be started", status: 1, code: "editor_failed")
        }
        return process
    }
}
