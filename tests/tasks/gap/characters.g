# Prints one JSON object per line for each named group: its multiplication table, classes and irreducible characters.

SetPrintFormattingStatus("*stdout*", false);  # GAP would otherwise break long lines with backslashes

Cyclic := n -> CyclicGroup(IsPermGroup, n);
Dihedral := n -> DihedralGroup(IsPermGroup, 2 * n);  # GAP takes the order, the name counts the corners
Dicyclic := order -> DicyclicGroup(IsPermGroup, order);

# The maps x -> ax + b over Z_p, where the point x is called x + 1.
Affine := function(p)
  local root;
  root := PrimitiveRootMod(p);
  return Group(PermList(List([0 .. p - 1], x -> (x + 1) mod p + 1)),
               PermList(List([0 .. p - 1], x -> (root * x) mod p + 1)));
end;

Groups := [
  ["Z5", Cyclic(5)], ["Z7", Cyclic(7)], ["Z8", Cyclic(8)], ["Z12", Cyclic(12)], ["Z15", Cyclic(15)],
  ["D4", Dihedral(4)], ["D5", Dihedral(5)], ["D6", Dihedral(6)], ["D7", Dihedral(7)], ["D12", Dihedral(12)],
  ["D15", Dihedral(15)],
  ["Q8", Dicyclic(8)], ["Q12", Dicyclic(12)],
  ["S3", SymmetricGroup(3)], ["S4", SymmetricGroup(4)], ["S5", SymmetricGroup(5)], ["S6", SymmetricGroup(6)],
  ["A4", AlternatingGroup(4)], ["A5", AlternatingGroup(5)], ["A6", AlternatingGroup(6)],
  ["Aff5", Affine(5)], ["Aff7", Affine(7)],
  ["SL2_3", SL(2, 3)], ["SL2_5", SL(2, 5)], ["PSL2_7", PSL(2, 7)],
  ["Z2xZ2", DirectProduct(Cyclic(2), Cyclic(2))],
  ["Z2xQ8", DirectProduct(Cyclic(2), Dicyclic(8))],
  ["Z3xS4", DirectProduct(Cyclic(3), SymmetricGroup(4))],
  ["D4xZ3", DirectProduct(Dihedral(4), Cyclic(3))],
  ["S3xS3", DirectProduct(SymmetricGroup(3), SymmetricGroup(3))],
  ["Z3xA4", DirectProduct(Cyclic(3), AlternatingGroup(4))],
];

# Integers, strings, lists and records only; GAP's own printing of ranges and strings is not JSON.
Json := function(x)
  if IsInt(x) then return String(x); fi;
  if IsString(x) then return Concatenation("\"", x, "\""); fi;
  if IsList(x) then return Concatenation("[", JoinStringsWithSeparator(List(x, Json), ","), "]"); fi;
  return Concatenation("{", JoinStringsWithSeparator(
    List(RecNames(x), key -> Concatenation("\"", key, "\":", Json(x.(key)))), ","), "}");
end;

ExactValue := function(x)
  if IsInt(x) then return x; fi;
  return rec(n := Conductor(x), coefficients := CoeffsCyc(x, Conductor(x)));
end;

Describe := function(name, G)
  local elements, index, table, classes, orders, values, indicators, columns, rows;
  elements := AsSSortedList(G);
  index := x -> PositionSorted(elements, x) - 1;
  table := CharacterTable(G);
  classes := List(ConjugacyClasses(table), class -> Set(AsList(class), index));  # in the order of Irr's columns
  orders := OrdersClassRepresentatives(table);
  values := List(Irr(table), ValuesOfClassFunction);
  indicators := Indicator(table, 2);

  # GAP's orders of classes and characters may change between versions; these do not.
  # The identity's class and the trivial character come first.
  columns := [1 .. Length(classes)];
  SortBy(columns, i -> [orders[i], classes[i]]);
  values := List(values, row -> row{columns});
  rows := [1 .. Length(values)];
  SortBy(rows, i -> Concatenation([values[i][1]], -values[i]));

  return rec(
    name := name,
    gap_version := GAPInfo.Version,
    order := Size(G),
    generators := List(GeneratorsOfGroup(G), index),
    table := List(MultiplicationTable(elements), row -> row - 1),
    classes := classes{columns},
    orders := orders{columns},
    characters := List(values{rows}, row -> List(row, ExactValue)),
    indicators := indicators{rows}
  );
end;

for pair in Groups do
  Print(Json(Describe(pair[1], pair[2])), "\n");
od;
QUIT_GAP(0);
