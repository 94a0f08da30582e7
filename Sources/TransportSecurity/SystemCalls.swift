internal import Glibc

/// The system's texts for error numbers.
enum SystemError {
    static func text(_ number: Int32) -> String {
        var text = [CChar](repeating: 0, count: 128)
        guard strerror_r(number, &text, text.count) == 0 else { return "error \(number)" }
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}

/// Owns a descriptor, or the -1 of a failed call. Closing leaves `errno` unchanged.
final class HeldDescriptor: Sendable {
    let number: Int32

    init(_ number: Int32) { self.number = number }

    deinit {
        guard isOpen else { return }
        let error = errno
        close(number)
        errno = error
    }

    var isOpen: Bool { number >= 0 }
}

/// Calls `read(2)`, again after an interruption by a signal.
func readRetrying(_ descriptor: Int32, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
    while true {
        let count = read(descriptor, buffer.baseAddress, buffer.count)
        if count >= 0 || errno != EINTR { return count }
    }
}

/// Calls `write(2)`, again after an interruption by a signal.
func writeRetrying(_ descriptor: Int32, _ buffer: UnsafeRawBufferPointer) -> Int {
    while true {
        let count = write(descriptor, buffer.baseAddress, buffer.count)
        if count >= 0 || errno != EINTR { return count }
    }
}

/// Returns the time, in seconds since 1970 (UTC).
func systemTime() -> Int64 {
    Int64(time(nil))
}
