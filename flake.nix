{
  description = "merutable: an embeddable table engine over Parquet, as a C library and a DuckDB extension";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      systems = [
        "x86_64-linux"
        "aarch64-linux"
        "x86_64-darwin"
        "aarch64-darwin"
      ];
      forAllSystems = function: nixpkgs.lib.genAttrs systems (system: function nixpkgs.legacyPackages.${system});
    in
    {
      # Compilers and runtimes come from nixpkgs; what has to match DuckDB's or our own pins (DuckDB itself, just, cmake,
      # clang-format, the Go tools) is still fetched by ./dev, so that the shell and a plain machine build the same thing.
      devShells = forAllSystems (pkgs: {
        default = pkgs.mkShell {
          packages = [
            pkgs.go
            pkgs.gcc
            pkgs.binutils
            pkgs.python3
            pkgs.nodejs
            pkgs.cargo
            pkgs.git
            pkgs.nix
          ];
          # A debug build has no optimisation, and the wrapper's _FORTIFY_SOURCE warns without it in every file.
          hardeningDisable = [ "all" ];
        };
      });

      formatter = forAllSystems (pkgs: pkgs.nixfmt);
    };
}
