import Foundation
import Synchronization

/// A program that this process starts and waits for.
///
/// Its signal handling is that of a program started by a shell. Otherwise a child inherits signals that this process
/// ignores, and the mask of a task's thread, which blocks nearly all.
package final class ChildProcess: Sendable {
    private let process: pid_t
    /// True when the child's process number may belong to another process.
    private let isOver = Mutex(false)

    /// The descriptors of a child that differ from those of this process.
    package struct Streams {
        package var input: Int32?
        package var output: Int32?
        package var error: Int32?
        /// An additional descriptor, `/dev/fd/3` for the child.
        package var other: Int32?

        package init(input: Int32? = nil, output: Int32? = nil, error: Int32? = nil, other: Int32? = nil) {
            self.input = input
            self.output = output
            self.error = error
            self.other = other
        }
    }

    /// Starts the program.
    /// - Parameters:
    ///   - words: The program's path, and its arguments.
    ///   - isApart: Keeps Ctrl-C in the terminal from the child.
    /// - Throws: ``CommandFailure`` when the program cannot be started.
    package init(
        _ words: [String], environment: [String: String], streams: Streams = Streams(), isApart: Bool = false
    ) throws(CommandFailure) {
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGPIPE] { sigaddset(&signals, signal) }
        posix_spawnattr_setsigdefault(&attributes, &signals)
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setpgroup(&attributes, 0)
        let group = isApart ? Int32(POSIX_SPAWN_SETPGROUP) : 0
        posix_spawnattr_setflags(
            &attributes, Int16(Int32(POSIX_SPAWN_SETSIGDEF) | Int32(POSIX_SPAWN_SETSIGMASK) | group))
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (descriptor, number) in [streams.input, streams.output, streams.error, streams.other].enumerated() {
            if let number { posix_spawn_file_actions_adddup2(&actions, number, Int32(descriptor)) }
        }
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        var variables: [UnsafeMutablePointer<CChar>?] = environment.map { strdup("\($0)=\($1)") } + [nil]
        defer { for word in arguments + variables { free(word) } }
        var process: pid_t = 0
        let result = posix_spawn(&process, words[0], &actions, &attributes, &arguments, &variables)
        guard result == 0 else {
            throw CommandFailure("\(words[0]) cannot be started: \(String(cString: strerror(result)))")
        }
        self.process = process
    }

    /// Sends a signal unless the child has ended.
    package func send(_ signal: Int32) {
        isOver.withLock { if !$0 { _ = kill(process, signal) } }
    }

    /// Blocks the thread until the child has ended. Call it once.
    /// - Returns: The exit status. After a signal, the status that a shell reports.
    package func wait() -> Int32 {
        // The process number stays reserved until the status is collected.
        var information = siginfo_t()
        while waitid(P_PID, id_t(process), &information, WEXITED | WNOWAIT) < 0, errno == EINTR {}
        return isOver.withLock { isOver in
            isOver = true
            var status: Int32 = 0
            while waitpid(process, &status, 0) < 0 {
                if errno != EINTR { return -1 }
            }
            let signal = status & 0x7f
            return signal == 0 ? status >> 8 & 0xff : 128 + signal
        }
    }

    /// Returns the signal that ended a program, from the exit status of ``wait()``, or nil if none did.
    package static func signal(of status: Int32) -> Int32? { (129...192).contains(status) ? status - 128 : nil }
}

/// Runs blocking work on a separate thread.
///
/// The cooperative pool has one thread for each core, and all tasks of the process need them.
package func onOwnThread<Result: Sendable>(
    _ body: @escaping @Sendable () throws -> Result
) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Swift.Result { try body() }) }
    }
}
