import CommandLineKit
import Cryptography
import Foundation
import SalternClient
import SecurityKey

#if SOFTWARE_PASSKEYS
    import SoftwarePasskeys
#endif

/// The source of a secret: a file, or a prompt at the terminal. Arguments and environment are not used, because other
/// users of the machine can see them.
struct SecretOption {
    private let option: String
    private let path: String?

    /// Parses an option that names a file.
    init(_ option: String, _ arguments: inout Arguments) throws(UsageError) {
        self.option = option
        path = try arguments.option(option)
    }

    /// True when the option was given.
    var isGiven: Bool { path != nil }

    /// Reads the secret.
    /// - Parameter isShown: True to show the typed text on the terminal.
    func read(_ prompt: String, isShown: Bool = false) throws -> SecureBytes {
        let secret: SecureBytes
        if let path {
            secret = try SecretInput.line(ofFile: path)
        } else {
            secret = try SecretInput.line(askingFor: prompt, isShown: isShown, orGivenBy: option)
        }
        guard !secret.isEmpty else { throw SecretInput.unreadable("\(prompt): the input is empty") }
        return secret
    }

    /// Reads text that is not secret.
    func text(_ prompt: String) throws -> String {
        let bytes = try read(prompt, isShown: true)
        guard let text = bytes.withUnsafeBytes({ String(validating: $0, as: UTF8.self) }) else {
            throw SecretInput.unreadable("\(prompt): not UTF-8")
        }
        return text
    }
}

/// `--password-file`, or the terminal.
struct PasswordOption {
    static let help = "  --password-file FILE  file with the password as first line (-: stdin)"

    private let secret: SecretOption

    init(_ arguments: inout Arguments, _ option: String = "--password-file") throws(UsageError) {
        secret = try SecretOption(option, &arguments)
    }

    func read(_ prompt: String = "Password") throws -> Password {
        try Self.password(try secret.read(prompt))
    }

    /// Reads a new password. At the terminal it is typed twice, because it is not visible.
    func readNew(_ prompt: String) throws -> Password {
        let password = try secret.read(prompt)
        if !secret.isGiven {
            guard try secret.read("\(prompt), again") == password else {
                throw SecretInput.unreadable("the two passwords differ; nothing was changed")
            }
        }
        return try Self.password(password)
    }

    private static func password(_ bytes: SecureBytes) throws -> Password {
        guard let password = Password(utf8: bytes) else { throw SecretInput.unreadable("the password is not UTF-8") }
        return password
    }
}

/// The USB security key, with its PIN from a file or the terminal.
struct SecurityKeyOption {
    static let help = "  --key-pin-file FILE   file with the security key's PIN (-: stdin)"

    private let pin: SecretOption

    init(_ arguments: inout Arguments) throws(UsageError) { pin = try SecretOption("--key-pin-file", &arguments) }

    func authenticator(_ console: Console) -> any PasskeyAuthenticator {
        #if SOFTWARE_PASSKEYS
            if let file = console.environment[Self.variable] { return SoftwareAuthenticator(file: URL(filePath: file)) }
        #endif
        return SecurityKey(
            pin: { [pin] in try pin.read("PIN of the security key") },
            onTouch: { if console.isTerminal { console.draw("Touch the security key.\n") } })
    }

    #if SOFTWARE_PASSKEYS
        /// The file of an authenticator in software, in programs that are built for tests.
        static let variable = "SALTERN_SOFTWARE_PASSKEYS"
    #endif
}
