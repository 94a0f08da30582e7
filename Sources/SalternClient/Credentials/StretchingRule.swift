public import Cryptography
internal import Foundation

/// The parameters of key derivation that this app accepts from a server. A server that was taken over could ask for a
/// key that is easy to guess.
public struct StretchingRule: Sendable {
    /// The salt prefix that the app ships or has learnt at its first contact.
    public var saltPrefix: String
    /// The host that the salt prefix belongs to. Passwords are not stretched for another one: with the prefix of this site
    /// it would get this site's password key from a person who uses one password. Nil for any host.
    public var host: String?
    /// The fewest iterations that this app has ever used.
    public var minimumIterations: Int
    /// The most iterations that a new credential gets because the server wants them. Iterations never fall, so without this
    /// bound one false reply could make every later log-in of the account slow. The caller of ``Vault/signUp`` may want more.
    public var automaticIterationLimit: Int

    /// The default of ``automaticIterationLimit``: four times what is recommended.
    public static let defaultAutomaticIterationLimit = 4 * PBKDF2.recommendedIterations

    /// Creates a rule. Each parameter is the property of its name.
    public init(
        saltPrefix: String, host: String? = nil, minimumIterations: Int = PBKDF2.recommendedIterations,
        automaticIterationLimit: Int = StretchingRule.defaultAutomaticIterationLimit
    ) {
        self.saltPrefix = saltPrefix
        self.host = host
        self.minimumIterations = minimumIterations
        self.automaticIterationLimit = automaticIterationLimit
    }

    /// Why parameters are refused.
    public enum Refusal: Error, Hashable, Sendable {
        /// Not `PBKDF2-HMAC-SHA256`.
        case algorithm
        /// Another prefix than ``StretchingRule/saltPrefix``.
        case saltPrefix
        /// Not the prefix followed by the userid.
        case salt
        /// Fewer than this app takes.
        case iterations(minimum: Int)
        /// More than this app takes.
        case tooManyIterations(maximum: Int)
        /// A password key that does not have 32 bytes.
        case keyLength
        /// The transport leads to another host than the salt prefix belongs to.
        case host
    }

    /// - Throws: ``Refusal/host`` for a transport that leads to another host. One that does not name its host is taken.
    func check(_ transport: any HTTPTransport) throws(Refusal) {
        guard let host, let actual = transport.host else { return }
        guard host.lowercased() == actual.lowercased() else { throw .host }
    }

    /// The most iterations that a server may ask for: more would only keep the device busy.
    public static let maximumIterations = 10_000_000

    /// - Throws: ``Refusal`` for anything but what this app would use itself.
    public func check(_ parameters: KDFParameters, userid: String) throws(Refusal) {
        guard parameters.algorithm == "PBKDF2-HMAC-SHA256" else { throw .algorithm }
        guard parameters.saltPrefix == saltPrefix else { throw .saltPrefix }
        guard parameters.salt.utf8.elementsEqual((saltPrefix + userid).utf8) else { throw .salt }
        try check(iterations: parameters.iterations)
        guard parameters.keyLength == 32 else { throw .keyLength }
    }

    func check(iterations: Int) throws(Refusal) {
        guard iterations >= minimumIterations else { throw .iterations(minimum: minimumIterations) }
        guard iterations <= Self.maximumIterations else { throw .tooManyIterations(maximum: Self.maximumIterations) }
    }

    /// Stretches a password: seconds of work, off the caller's thread.
    /// - Throws: ``Refusal/iterations(minimum:)``, ``Refusal/tooManyIterations(maximum:)``.
    public func stretch(
        _ password: Password, userid: String, iterations: Int
    ) async throws(Refusal) -> StretchedPassword {
        try check(iterations: iterations)
        return StretchedPassword(await Self.derive(password.bytes, saltPrefix + userid, iterations))
    }

    static func derive(_ secret: SecureBytes, _ salt: String, _ iterations: Int) async -> SecureBytes {
        await withCheckedContinuation { continuation in
            DispatchQueue.global(qos: .userInitiated).async {
                let stretched = try? PBKDF2.deriveKey(
                    from: secret, salt: salt.utf8, unsafeUncheckedIterations: iterations, byteCount: 64)
                // It fails for lengths and counts only, which are checked before.
                continuation.resume(returning: stretched ?? SecureRandom.secureBytes(64))
            }
        }
    }
}
