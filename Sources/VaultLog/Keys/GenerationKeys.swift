internal import Cryptography

/// The keys of generations that a member has.
public struct GenerationKeys: Sendable {
    /// The reason for which keys are missing.
    public enum Failure: Error, Hashable, Sendable {
        /// The key is not that of the generation.
        case wrongKey(GenerationNumber)
        /// The log has no such generation.
        case unknownGeneration(GenerationNumber)
    }

    private var keys: [GenerationNumber: GenerationKey] = [:]

    /// Creates an empty set.
    public init() {}

    /// Returns the key of a generation.
    public subscript(_ number: GenerationNumber) -> GenerationKey? { keys[number] }

    /// Returns the key with an id, in the log's order.
    public func key(_ id: VaultKeyID) -> GenerationKey? { keys.values.first { $0.id == id } }

    /// The numbers, in ascending order.
    public var numbers: [GenerationNumber] { keys.keys.sorted() }

    /// Adds the key of a generation.
    /// - Throws: ``Failure`` unless the log describes it.
    public mutating func insert(
        _ key: GenerationKey, _ number: GenerationNumber, _ log: MembershipLog
    ) throws(Failure) {
        guard let generation = log.generation(number) else { throw .unknownGeneration(number) }
        guard generation.describes(key) else { throw .wrongKey(number) }
        keys[number] = key
    }

    /// Opens earlier keys, from the latest to the first, and keeps those that exist already.
    /// - Parameter sealed: Of a generation, the key before it as ``GenerationKey/sealPrevious(_:of:number:)`` seals it.
    /// - Returns: The generations whose previous key is missing or wrong. A manager that has it can seal it again.
    public mutating func openPrevious(_ sealed: [GenerationNumber: [UInt8]], _ log: MembershipLog) -> [GenerationNumber]
    {
        var broken: [GenerationNumber] = []
        for (earlier, later) in zip(log.generations, log.generations.dropFirst()).reversed()
        where keys[earlier.number] == nil {
            guard let key = keys[later.number], let box = sealed[later.number],
                let previous = key.openPrevious(box, of: log.vault, earlier)
            else {
                broken.append(later.number)
                continue
            }
            keys[earlier.number] = previous
        }
        return broken.reversed()
    }
}
