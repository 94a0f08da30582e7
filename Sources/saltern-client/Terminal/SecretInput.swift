import CommandLineKit
import Cryptography
import Foundation

/// Reads a line into memory that is zeroed.
enum SecretInput {
    private static let limit = 4_096

    static func unreadable(_ message: String) -> CommandFailure {
        CommandFailure(message, status: ExitStatus.unreadable, code: "unreadable")
    }

    // MARK: Files

    /// Returns the first line of a file. With `-`, each call reads one line of standard input.
    /// - Throws: ``CommandFailure`` for a file that others can read.
    static func line(ofFile path: String) throws -> SecureBytes {
        if path == "-" { return try line(STDIN_FILENO) }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw CommandFailure("cannot read \(path)", status: ExitStatus.notFound, code: "file_not_found")
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw unreadable("cannot read \(path)") }
        // An input that is not a regular file, such as a pipe of the shell, does not stay on the disk. A group may read
        // root's file, as for the keys of `saltern` and in PostgreSQL.
        let isRoots = status.st_uid == 0 && geteuid() != 0
        if status.st_mode & S_IFMT == S_IFREG, status.st_mode & (isRoots ? 0o037 : 0o077) != 0 {
            let mode = "0" + String(status.st_mode & 0o7777, radix: 8)
            throw CommandFailure(
                "others can read or write \(path) (mode \(mode)): chmod 600 it", status: ExitStatus.store,
                code: "file_exposed")
        }
        return try line(descriptor)
    }

    // MARK: The terminal

    /// Prompts at the terminal, even when standard input is redirected.
    static func line(askingFor prompt: String, isShown: Bool, orGivenBy option: String) throws -> SecureBytes {
        let descriptor = open("/dev/tty", O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw UsageError(message: "there is no terminal for input; \(option) is missing")
        }
        defer { close(descriptor) }
        let prompt = VisibleText.visible(prompt)
        if isShown {
            write(prompt + ": ", to: descriptor)
            return try line(descriptor)
        }
        var before = termios()
        guard tcgetattr(descriptor, &before) == 0 else { throw unreadable("the terminal cannot be read") }
        var silent = before
        silent.c_lflag &= ~tcflag_t(ECHO)
        guard tcsetattr(descriptor, TCSAFLUSH, &silent) == 0 else {
            throw unreadable("the terminal cannot hide the input")
        }
        defer {
            tcsetattr(descriptor, TCSAFLUSH, &before)
            write("\n", to: descriptor)
        }
        // The prompt comes last, because earlier input is discarded.
        write(prompt + ": ", to: descriptor)
        return try line(descriptor)
    }

    private static func write(_ text: String, to descriptor: Int32) {
        let bytes = Array(text.utf8)
        _ = bytes.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
    }

    // MARK: Reading

    /// Reads a line byte by byte, so that other readers get the rest.
    private static func line(_ descriptor: Int32) throws -> SecureBytes {
        var count = 0
        let buffer = try SecureBytes(count: limit) { buffer throws in
            while true {
                try waitForInput(descriptor)
                guard count < limit else { throw unreadable("the line is too long") }
                let result = read(descriptor, buffer.baseAddress?.advanced(by: count), 1)
                if result < 0, errno == EINTR { continue }
                guard result >= 0 else { throw unreadable("the line cannot be read") }
                if result == 0 || buffer[count] == UInt8(ascii: "\n") { break }
                count += 1
            }
            if count > 0, buffer[count - 1] == UInt8(ascii: "\r") { count -= 1 }
        }
        return buffer.withUnsafeBytes { SecureBytes(copying: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
    }

    /// Waits for input. Ctrl-C alone does not end a read, because another thread receives signals.
    private static func waitForInput(_ descriptor: Int32) throws {
        var state = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        while poll(&state, 1, 100) == 0 {
            if Task.isCancelled { throw CancellationError() }
        }
        if Task.isCancelled { throw CancellationError() }
    }
}
